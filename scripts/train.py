"""Learns a stream with and without replay, and compares.

python scripts/train.py --gin_file=gin/quickstart.gin
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags

from gnr_keras.command_line import starting
from gnr_keras.command_line import training_flags
from gnr_keras.command_line.training import main

flags.adopt_module_key_flags(training_flags)

if __name__ == "__main__":
    starting.run(main)
