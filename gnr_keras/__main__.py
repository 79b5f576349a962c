"""Learns a stream with and without replay, and compares.

The quickstart, with nothing to download; what it would do; three orders:

    python -m gnr_keras --gin_file=quickstart.gin
    python -m gnr_keras --gin_file=quickstart.gin --dry_run
    python -m gnr_keras --gin_file=quickstart.gin --seeds=0,1,2

Your own images, a folder a class, and other values:

    python -m gnr_keras --gin_file=own_images.gin \\
        --gin_bindings="images = 'photos'" \\
        --gin_bindings="following/Phase.epochs = 8"
"""

from absl import flags

from gnr_keras.command_line import starting
from gnr_keras.command_line import training
from gnr_keras.command_line import training_flags

flags.adopt_module_key_flags(training_flags)

if __name__ == "__main__":
    starting.run(training.main)
