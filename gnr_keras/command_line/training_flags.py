"""The flags of the trainer."""

from absl import flags

from gnr_keras import distribution
from gnr_keras import runs

GIN_FILE = flags.DEFINE_multi_string("gin_file", [], "Gin file; repeatable.")
GIN_BINDINGS = flags.DEFINE_multi_string(
    "gin_bindings", [], "Binding that overrides the files; repeatable."
)
OUTPUT_DIR = flags.DEFINE_string(
    "output_dir", None, "Folder of the results. Default: a new one in runs/."
)
RUNS = flags.DEFINE_list(
    "runs", "none,PR-GD,NR-GD", f"Runs to compare, of {', '.join(runs.RUNS)}."
)
SEEDS = flags.DEFINE_list("seeds", "0", "Seeds to run each with.")
DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder of the data sets. Default: that of TFDS."
)
DRY_RUN = flags.DEFINE_bool(
    "dry_run", False, "Print the plan of all runs, and end; writes nothing."
)
RESUME = flags.DEFINE_bool(
    "resume", True, "Go on where --output_dir holds some of these runs."
)
CHECKPOINT_SECONDS = flags.DEFINE_float(
    "checkpoint_seconds", 30.0, "Least time between two; 0: each experience."
)
WITHIN_SECONDS = flags.DEFINE_float(
    "checkpoint_within_seconds",
    None,
    "Least time between two in the middle of an experience. Default: none.",
)
DETERMINISTIC = flags.DEFINE_bool(
    "deterministic", False, "TensorFlow's deterministic operations; slower."
)
SHARE_DIR = flags.DEFINE_string(
    "share_dir",
    None,
    "Folder in which runs share their first experience and all latents, also "
    "those of other commands; by default one for this command, if there are "
    "several runs.",
)
TENSORBOARD = flags.DEFINE_bool(
    "tensorboard", False, "Write what TensorBoard shows, beside the results."
)
PROFILE = flags.DEFINE_list(
    "profile",
    None,
    "First and last step to trace, such as 50,80; counted from the start.",
)
STRATEGY = flags.DEFINE_enum(
    "strategy",
    "default",
    distribution.STRATEGIES,
    "Devices: one; all GPUs of this machine; the workers of TF_CONFIG.",
)
