import os
import signal

import pytest

from trtconv.cli.console import ConsoleProgress


class Finalizer:
    """Its `__del__` meets the Ctrl-C, where Python drops the exception."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_drops_is_not_lost():
    before = signal.getsignal(signal.SIGINT)
    progress = ConsoleProgress(-1)

    def work():
        with progress:
            thing = Finalizer()
            del thing
            progress.phase("the next step")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_in_the_last_step_is_told_at_the_end():
    progress = ConsoleProgress(-1)

    def work():
        with progress:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):
                    pass
            except KeyboardInterrupt:
                pass  # as careless code does

    with pytest.raises(KeyboardInterrupt):
        work()
