"""Tests of signals that wait, sent as a shell would."""

import os
import signal

import pytest

from gnr_keras import interruption

SIGNALS = [signal.SIGINT, signal.SIGTERM]


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_waits_while_it_is_put_off(number):
    told = []
    with interruption.Interruption(lambda: told.append(1)) as interrupted:
        assert interrupted.received is None
        with interrupted.put_off():
            send(number)
            assert interrupted.received == number
            assert told == [1]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_one_ends_at_once(number):
    with interruption.Interruption() as interrupted:
        with interrupted.put_off():
            send(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                send(number)
        assert interrupted.received == number


@pytest.mark.parametrize("number", SIGNALS)
def test_where_nobody_puts_it_off_it_ends_at_once(number):
    with interruption.Interruption() as interrupted:
        with interrupted.put_off():
            pass
        with pytest.raises(KeyboardInterrupt):
            send(number)
        assert interrupted.received == number


def test_signals_are_what_they_were_afterwards():
    before = [signal.getsignal(number) for number in SIGNALS]
    with interruption.Interruption():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before
