"""What went wrong half way, so that only a later driver can do the rest."""

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
    """Stands around what must be done whole; once it was not, nothing is begun any more.

    A later driver finds on disk what this one has not given verdicts on; any further plan would
    hide that. And what was taken for a plan that never was, only its source can give again.
    """

    def __init__(self) -> None:
        self._error: SparkstormError | None = None

    def __bool__(self) -> bool:
        return self._error is not None

    def check(self) -> None:
        """Raise the error that was kept, if there is one."""
        if self._error is not None:
            raise self._error

    @contextmanager
    def kept(self, what: str) -> Iterator[None]:
        """Keep what is raised, and raise it whenever anything is to be begun again.

        Args:
            what: what could not be done then, for people.
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
