"""Words of messages that several modules use."""

# Of lists that only show what there is; more would hide the rest of a message.
_SHOWN = 12


def name_some(things):
    """Returns a list of names for a message, of a length that is read.

    Args:
        things: names, or what has one as text.
    """
    names = list(map(str, things))
    more = len(names) - _SHOWN
    if more > 0:
        names[_SHOWN:] = [f"... and {more} more"]
    return ", ".join(names)
