"""Committers: bolts whose effect on the outside world happens once per transaction."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from sparkstorm.components.bolt import BasicBolt
from sparkstorm.components.collector import BasicCollector
from sparkstorm.config import Config
from sparkstorm.streams import Outputs
from sparkstorm.tuples import Tuple

__all__ = ["CommitterBolt", "Transaction"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One batch of a topology, as a committer sees it.

    Attributes:
        txid: the batch's number. Those of one ``owner`` only grow; some are left out.
        owner: whose numbers these are: topology, checkpoint and component. A new checkpoint
            counts from 0 again under another owner.
        time: when the batch was planned, in seconds since 1970.
    """

    txid: int
    owner: str
    time: float


class CommitterBolt(BasicBolt):
    """A bolt that applies each batch to the outside world exactly once, and all of it or nothing.

    Needs ``processing.guarantee = "exactly-once"``. Its tasks :meth:`stage` tuples on the
    executors. When the whole batch has been processed without a failure, what they staged is made
    durable and handed to :meth:`commit` in the driver, before Spark commits the batch. As Storm's
    ``ICommitter``, but with one commit for all tasks together.
    """

    outputs: Outputs = "staged"
    """Not to be changed: what was staged, on its way to the driver."""

    def stage(self, tup: Tuple) -> Any:
        """Return what :meth:`commit` needs of a tuple, of any picklable kind; None for nothing.

        Called on an executor. If it raises, the tuple fails, and the batch is rolled back.
        """
        return tuple(tup.values)

    @abstractmethod
    def commit(self, transaction: Transaction, staged: Sequence[Any]) -> None:
        """Apply what a transaction has staged; called in the driver, in the order of the txids.

        Never called for a transaction that staged nothing. It is called again with the same txid
        and the same values if it raised, and after a crash, even if it had succeeded: store the
        txid together with the data, and do nothing if that one or a later one is stored for the
        ``owner`` already.
        """

    def connect(self, config: Config) -> None:
        """Called once in the driver, before anything runs; raise if the target is out of reach."""

    def disconnect(self) -> None:
        """Called once in the driver at the end, if it ends in good order."""

    @final
    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Stage one tuple."""
        staged = self.stage(tup)
        if staged is not None:
            collector.emit((staged,))
