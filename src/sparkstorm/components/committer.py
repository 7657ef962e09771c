"""Committers: bolts whose effect on the outside world happens once per transaction."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from sparkstorm.components.bolt import BasicBolt
from sparkstorm.components.collector import BasicCollector
from sparkstorm.streams import Outputs
from sparkstorm.tuples import Tuple

if TYPE_CHECKING:  # sparkstorm/__init__.py tells why
    from sparkstorm.config import Config

__all__ = ["CommitterBolt", "Transaction"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One batch of a topology, seen by a committer.

    Attributes:
        txid: the batch's number. Within one ``owner`` numbers only grow, with gaps.
        owner: the topology, checkpoint and component behind the numbers. A new checkpoint counts
            from 0 under a new owner.
        time: when the batch was planned, in seconds since 1970.
    """

    txid: int
    owner: str
    time: float


class CommitterBolt(BasicBolt):
    """A bolt that applies each batch to the outside world exactly once, whole or not at all.

    It needs ``processing.guarantee = "exactly-once"``. The bolt's tasks :meth:`stage` tuples on the
    executors. When the whole batch has run without a failure, the engine makes the staged values
    durable. Then the driver hands them to :meth:`commit`, before Spark commits the batch. Storm's
    ``ICommitter`` works alike, but commits in each task; here one commit serves all tasks.
    """

    outputs: Outputs = "staged"
    """The stream of staged values to the driver. Do not change it."""

    def stage(self, tup: Tuple) -> Any:
        """Return the values :meth:`commit` needs of a tuple, or None to stage nothing.

        Executors call it. The result may be of any picklable type. If ``stage`` raises, the tuple
        fails and the batch is rolled back.
        """
        return tuple(tup.values)

    @abstractmethod
    def commit(self, transaction: Transaction, staged: Sequence[Any]) -> None:
        """Apply the staged values of a transaction; the driver calls it in order of txids.

        Transactions without staged values are skipped. The driver calls ``commit`` again with the
        same txid and the same values if the call raised, and also after a crash, even one right
        after a success. So store the txid together with the data. Do nothing if the store already
        has the same or a later txid for the ``owner``.
        """

    def connect(self, config: "Config") -> None:
        """Called once in the driver, before anything runs; raise if the target is out of reach."""

    def disconnect(self) -> None:
        """Called once in the driver at the end, if the run ends in good order."""

    @final
    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Stage one tuple."""
        staged = self.stage(tup)
        if staged is not None:
            collector.emit((staged,))
