"""Ctrl-C and SIGTERM, which wait until what was learned is saved."""

import contextlib
import signal

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Puts the first of these signals off while someone says so.

    Where nobody does, and for a second one, it is a `KeyboardInterrupt` at
    once. Signals reach the main thread alone, so it has to be used there.

    Args:
        announce: called without arguments when a signal is put off. It may
            come between any two steps of Python, also in a write of the same
            file: `os.write` is safe, `print` is not.

    Attributes:
        received: the number of the last signal, `None` before it.

    Example:

    ```python
    with Interruption() as interruption:
        with interruption.put_off():
            for experience in stream:
                learner.fit(experience)
                if interruption.received:
                    break
    ```
    """

    def __init__(self, announce=None):
        self.received = None
        self._announce = announce
        self._waits = False

    def __enter__(self):
        self._handlers = {
            number: signal.signal(number, self._receive) for number in _SIGNALS
        }
        return self

    def __exit__(self, *error):
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def put_off(self):
        """Puts a signal off; who asks looks at `received` now and then."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False

    def _receive(self, number, frame):
        first = self.received is None
        self.received = number
        if not (self._waits and first):
            raise KeyboardInterrupt
        if self._announce is not None:
            self._announce()
