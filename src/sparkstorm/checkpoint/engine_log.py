"""The engine log: the batches in Spark's own checkpoint."""

from typing import NamedTuple

from sparkstorm.errors import CheckpointError

__all__ = ["EngineLog"]

_GO_ON = (
    "restore the whole checkpoint folder from one backup; or give another checkpoint folder: "
    "sources then give again what was not acked, and state begins anew"
)


class EngineLog(NamedTuple):
    """How far Spark's log goes, to compare with our journal.

    The plan of a batch is durable before Spark hears of the batch. Spark has committed a batch
    before the next batch is planned. So each of the two logs shows whether files of the other are
    gone.

    Attributes:
        heard: the newest batch Spark knows of; -1 if there is none.
        committed: the newest batch Spark has committed; -1 if there is none.
    """

    heard: int = -1
    committed: int = -1

    def check(self, planned: int, settled: int, damaged: str) -> None:
        """Check that the newest readable plan is the newest plan in use.

        Args:
            planned: the number of the newest readable plan; -1 if there is none.
            settled: the newest batch with verdicts for its messages when that plan was written.
            damaged: the file of a newer plan that cannot be read, if there is one.

        Raises:
            CheckpointError: plans are missing, or Spark has lost batches.
        """
        if self.heard > planned:
            raise CheckpointError(
                f"Spark knows of batch {self.heard}, but "
                + (f"its plan {damaged} is damaged" if damaged else "there is no plan of it")
                + f", so nobody knows what was in it: {_GO_ON}"
            )
        if self.committed < settled:
            raise CheckpointError(
                f"batch {settled} was committed and its messages have their verdicts, but in "
                f"Spark's part of the checkpoint batch {self.committed} is the last: Spark does "
                f"not force its files to the disk, so a power failure may take them. What was "
                f"acked since then is not in the state: {_GO_ON}"
            )
