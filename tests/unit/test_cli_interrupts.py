"""Signals of the command line, where no Spark is needed to see them."""

import os
import signal

import pytest

from sparkstorm.cli.interrupts import Interrupts


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_signal_ends_a_fork_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    """A signal to the group also reaches the child that is about to become Spark's JVM."""
    with Interrupts() as interrupts:
        child = os.fork()
        if not child:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os._exit(77)  # as a hook does that swallows the exception
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGTERM
    assert not interrupts.asked.is_set()
    assert capfd.readouterr().err == ""


def test_a_signal_to_this_process_interrupts_its_start() -> None:
    """Until a topology runs there is nothing to drain."""
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
    assert interrupts.asked.is_set()


def test_nohup_outlives_its_terminal() -> None:
    """A program that was started with SIGHUP ignored is not to hear it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            interrupts.drain_first()
            os.kill(os.getpid(), signal.SIGHUP)
            assert not interrupts.asked.is_set()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
