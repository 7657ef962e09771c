"""A target of transactions, in memory: for tests of exactly-once topologies."""

from collections.abc import Sequence
from typing import Any, final

from sparkstorm.components.committer import CommitterBolt, Transaction
from sparkstorm.testing.internal.shared import Shared

__all__ = ["MemorySink"]


class _Table(Shared):
    """A table on a server: outlives the drivers that write to it."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Any] = []
        self.last: dict[str, int] = {}
        self.calls: list[int] = []


@final
class MemorySink(CommitterBolt):
    """Keeps the values of all tuples, each transaction once, as a database would.

    >>> import sparkstorm as ss
    >>> from sparkstorm.testing import LogSpout, complete_topology
    >>> sink = MemorySink()
    >>> builder = ss.TopologyBuilder()
    >>> _ = builder.set_spout("words", LogSpout([["storm"], ["spark"]], "word string"))
    >>> _ = builder.set_bolt("sink", sink).shuffle_grouping("words")
    >>> once = ss.Config(processing_guarantee="exactly-once")
    >>> _ = complete_topology(builder.create_topology(), config=once)
    >>> sorted(sink.rows)
    [('spark',), ('storm',)]
    """

    def __init__(self) -> None:
        self._table = _Table()

    @property
    def rows(self) -> list[Any]:
        """The applied values, in order."""
        return list(self._table.rows)

    @property
    def calls(self) -> list[int]:
        """The txids of all calls of :meth:`commit`, repeated calls included."""
        return list(self._table.calls)

    def commit(self, transaction: Transaction, staged: Sequence[Any]) -> None:
        """Keep the staged values, unless this transaction or a later one was applied before."""
        table = self._table
        table.calls.append(transaction.txid)
        if table.last.get(transaction.owner, -1) < transaction.txid:
            table.rows += staged
            table.last[transaction.owner] = transaction.txid
