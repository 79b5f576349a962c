"""Pretrained weights: Keras' downloads, and files."""

import pathlib
import warnings

import h5py


def find(path, data_dir):
    """Returns the path of a file, seen from here or else from `data_dir`."""
    path = pathlib.Path(path).expanduser()
    if data_dir is not None and not path.exists():
        beside = pathlib.Path(data_dir).expanduser() / path
        if beside.exists():
            return beside
    return path


def fetch(build):
    """Builds a network with the ImageNet weights that Keras downloads.

    Args:
        build: function without arguments that returns the network.
    """
    try:
        return build()
    except ValueError:
        raise
    except Exception as error:  # Keras raises no narrower one.
        raise ValueError(
            f"Keras could not get its ImageNet weights: {error}. Connect, put "
            "the file of this address into ~/.keras/models (and delete one "
            "there that is cut off), or give `weights` the path of a "
            "`.weights.h5` file."
        ) from error


def load(path, networks, description, names='`None`, "imagenet"'):
    """Reads a file of weights into the first network that it fits.

    Of a Keras 3 file, layers that the network does not have, such as a head,
    are left out.

    Args:
        path: a `.weights.h5` file, or an `.h5` file of earlier versions.
        networks: functions without arguments that each return a model; they
            are tried in turn.
        description: of the network, for messages.
        names: what `weights` may be besides a path, for messages.

    Returns:
        The model that the weights are in.
    """
    path = pathlib.Path(path)
    _check_file(path, names)
    errors = []
    for build in networks:
        network = build()
        try:
            with warnings.catch_warnings():
                # Dozens of these where layers do not fit.
                warnings.filterwarnings("ignore", "Skipping nested container")
                network.load_weights(path)
            return network
        except (KeyError, OSError, ValueError) as error:
            errors.append(error)
    raise ValueError(
        f"{path} does not hold weights of {description}. Give the file of "
        "such a network, or build the network that the weights were saved from."
    ) from errors[0]


def _check_file(path, names):
    if not path.is_file():
        raise ValueError(
            f"There is no file of weights {str(path)!r}. Expected {names} or "
            "the path of a `.weights.h5` or `.h5` file."
        )
    size = path.stat().st_size
    if not h5py.is_hdf5(path):
        raise ValueError(
            f"{path} ({size:,} bytes) is not an HDF5 file, as files of weights "
            "are. Give one that `save_weights` wrote or that Keras downloaded."
        )
    try:
        with h5py.File(path) as file:
            # Long lists of names are cut into "layer_names0" and so on.
            legacy = "model_weights" in file or any(
                name.startswith("layer_names") for name in file.attrs
            )
    except OSError as error:
        raise ValueError(
            f"{path} ({size:,} bytes) is cut off or damaged. Copy or download "
            "it again."
        ) from error
    # Keras goes by the name.
    ends = (".h5", ".hdf5") if legacy else (".weights.h5",)
    if not path.name.endswith(ends) or (
        legacy and path.name.endswith(".weights.h5")
    ):
        raise ValueError(
            f"{path} is not of the format that its name stands for. Rename it: "
            "Keras expects `.weights.h5` of files that Keras 3's "
            "`save_weights` wrote, and `.h5` alone of earlier ones."
        )
