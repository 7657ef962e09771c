"""Faults: errors half way through a step, so that only a later driver can do the rest."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from sparkstorm.errors import CheckpointError, SparkstormError
from sparkstorm.texts.user_errors import message_of

__all__ = ["NO_PLAN", "NO_VERDICTS", "Fault"]

NO_VERDICTS = "messages could not be given their verdicts"
NO_PLAN = "no batch could be planned"


@final
class Fault:
    """Guards steps that must be done whole; after a failed step no further step begins.

    After a failure the checkpoint tells a later driver which verdicts are missing. Any further plan
    would hide that. And messages taken for a plan that never was, only their source can give again.
    """

    def __init__(self) -> None:
        self._error: SparkstormError | None = None

    def __bool__(self) -> bool:
        return self._error is not None

    def check(self) -> None:
        """Raise the error of an earlier step, if there was one."""
        if self._error is not None:
            raise self._error

    @contextmanager
    def kept(self, what: str) -> Iterator[None]:
        """Keep an error that is raised within, and raise the same error in all later steps.

        Args:
            what: names the failed step, for people.
        """
        self.check()
        try:
            yield
        except SparkstormError as error:
            self._error = error
            raise
        except Exception as error:
            self._error = CheckpointError(
                f"{what}: {message_of(error)}. Mend that, and start the topology again "
                f"on the same checkpoint"
            )
            raise
