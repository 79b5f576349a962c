"""Within a dry run, nothing is downloaded, drawn or written to a disk."""

import contextlib
import contextvars

_ON = contextvars.ContextVar("dry_run", default=False)


@contextlib.contextmanager
def run():
    """Makes what happens within a dry run."""
    token = _ON.set(True)
    try:
        yield
    finally:
        _ON.reset(token)


def is_on():
    """Whether this is a dry run: then leave the disk as it is."""
    return _ON.get()


def check_off(what):
    """Raises `ValueError` in a dry run, before something would be fetched.

    Args:
        what: what is not at hand, for the message.
    """
    if is_on():
        raise ValueError(
            f"{what} is not at hand, and a dry run fetches nothing. Name the "
            "folder where it is with --data_dir, or leave --dry_run away: the "
            "training fetches it."
        )
