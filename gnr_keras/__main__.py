"""Learns a stream with and without replay, and compares.

python -m gnr_keras --gin_file=quickstart.gin
"""

from absl import flags

from gnr_keras.command_line import starting
from gnr_keras.command_line import training
from gnr_keras.command_line import training_flags

flags.adopt_module_key_flags(training_flags)

if __name__ == "__main__":
    starting.run(training.main)
