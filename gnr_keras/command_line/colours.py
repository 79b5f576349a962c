"""Colours where a terminal shows them, and nobody has asked for none."""

import os


def red(text, stream):
    """Returns the text, in red where `stream` is a terminal."""
    return _paint(text, "31", stream)


def bold(text, stream):
    """Returns the text, in bold where `stream` is a terminal."""
    return _paint(text, "1", stream)


def _paint(text, code, stream):
    # See no-color.org.
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or not stream.isatty():
        return text
    return f"\x1b[{code}m{text}\x1b[0m"
