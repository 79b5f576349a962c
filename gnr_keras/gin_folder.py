"""The folder of the gin files that come with the package."""

import pathlib

_PACKAGE = pathlib.Path(__file__).resolve().parent


def find():
    """Returns the folder: that of the installed package, or the checkout's."""
    # First: beside an installed package, `gin` is that of gin-config.
    installed = _PACKAGE / "gin_files"
    return installed if installed.is_dir() else _PACKAGE.parent / "gin"
