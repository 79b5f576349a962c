"""Learns a stream with and without replay, and compares.

The quickstart, with nothing to download; what it would do; three orders:

    python scripts/train.py --gin_file=gin/quickstart.gin
    python scripts/train.py --gin_file=gin/quickstart.gin --dry_run
    python scripts/train.py --gin_file=gin/quickstart.gin --seeds=0,1,2

Your own images, a folder a class, and other values:

    python scripts/train.py --gin_file=gin/own_images.gin \\
        --gin_bindings="images = 'photos'" \\
        --gin_bindings="following/Phase.epochs = 8"
"""

from absl import flags

from gnr_keras.command_line import starting
from gnr_keras.command_line import training_flags
from gnr_keras.command_line.training import main

flags.adopt_module_key_flags(training_flags)

if __name__ == "__main__":
    starting.run(main)
