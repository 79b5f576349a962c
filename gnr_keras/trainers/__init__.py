"""Training loops of classifier and generator: `tf.function` steps.

On latents, a call of the compiled function runs many steps, over batches that
are gathered before; class sets, sizes and rates are arguments or variables. So
there is one trace for all experiences, and no return to Python at each step.
The callbacks see what they see under `model.fit` with `steps_per_execution`.
On images, as in the first experience, each step is a call.

Under `tf.distribute` each replica takes its slice of the global batch, and of
the noise drawn for it: results do not depend on the number of devices.
"""

from gnr_keras.trainers.classifier import ClassifierTrainer
from gnr_keras.trainers.generator import GeneratorTrainer
from gnr_keras.trainers.phase import Phase

__all__ = ["ClassifierTrainer", "GeneratorTrainer", "Phase"]
