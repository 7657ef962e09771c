"""What the engine under a driver has written down of its batches: Spark's own checkpoint."""

from typing import NamedTuple

from sparkstorm.errors import CheckpointError

__all__ = ["EngineLog"]

_GO_ON = (
    "restore the whole checkpoint folder from one backup; or give another checkpoint folder: "
    "sources then give again what was not acked, and state begins anew"
)


class EngineLog(NamedTuple):
    """How far the engine's log goes; each file of it follows one of ours, or goes before one.

    The plan of a batch is durable before the engine hears of the batch. The engine has committed a
    batch before the next one is planned. So each tells whether something of the other is gone.

    Attributes:
        heard: the newest batch that the engine knows of; -1 if there is none.
        committed: the newest batch that it has committed; -1 if there is none.
    """

    heard: int = -1
    committed: int = -1

    def check(self, planned: int, settled: int, damaged: str) -> None:
        """Make sure that the newest plan that can be read is the newest that was used.

        Args:
            planned: the number of that plan; -1 if there is none.
            settled: the newest batch whose messages had their verdicts when it was written.
            damaged: the file of a newer plan that cannot be read, if there is one.

        Raises:
            CheckpointError: plans are missing, or the engine has lost batches.
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
