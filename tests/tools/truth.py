"""The true end of each message, read from the diaries of committed runs.

This module knows nothing of roots, shares and ackers. It walks the tree by the names of tuples:
for each emitted tuple, every subscriber must have received as many copies as its grouping asks
for, and must have acked each copy.
"""

from collections import Counter
from typing import final

from sparkstorm.sources.blame import DIED_OF_IT
from sparkstorm.testing.internal.cluster import TaskRun
from sparkstorm.testing.internal.witness import BrokenPromise, Message
from sparkstorm.testing.simulation import Observer, Simulation
from sparkstorm.topology.graph import Topology
from sparkstorm.topology.grouping import All, Custom, Direct
from sparkstorm.verdicts import Failure, Reason
from tests.tools.random_topology import Child, Entry, RandomTopology, Some

__all__ = ["Truth"]


@final
class Truth(Observer):
    """Checks every verdict and every state against the diary of the topology's bolts.

    - A message is acked only if its whole tree was received and acked in the last committed batch.
    - A message fails with ``failed`` or ``error`` only if a bolt did so; with ``lost`` only if
      something was lost or a driver died; with ``timeout`` only if a bolt forgot a tuple of its
      tree.
    - The committed state counts exactly the tuples that committed runs counted.
    """

    def __init__(self, drawn: RandomTopology) -> None:
        self._drawn = drawn
        self._topology: Topology = drawn.topology
        self._batch: dict[tuple[str, str], list[Entry]] = {}
        self._damaged = False
        self._deaths = 0
        self._forgotten: set[Message] = set()
        self._counted: dict[str, Counter[tuple[int, int]]] = {}

    def running(self, run: TaskRun) -> None:
        """Let the bolts write into this run's part of the diary."""
        self._drawn.diary.begin(run)

    def committed(self, number: int, runs: list[TaskRun], *, damaged: bool) -> None:
        """Read the diary of the runs of a committed batch."""
        self._batch = {}
        self._damaged = damaged
        for entry in self._drawn.diary.take(runs):
            self._batch.setdefault((entry.component, entry.uid), []).append(entry)
            if entry.counted is not None:
                self._counted.setdefault(entry.component, Counter())[entry.counted] += 1
        for spout, count in self._drawn.messages.items():
            messages = [(spout, n) for n in range(count)]
            self._forgotten.update(m for m in messages if "open" in self.statuses(m))

    def verdict(self, message: Message, failure: Failure | None) -> None:
        """Check that a verdict is true."""
        found = self.statuses(message)
        if failure is None:
            if found - {"acked"}:
                raise BrokenPromise(f"{message} was acked, but of its tree some was {found}")
        elif not self._is_cause(message, failure, found):
            raise BrokenPromise(f"{message} failed by {failure}, but its tree was {found}")

    def driver_died(self) -> None:
        """Note that the dead driver may have lost messages."""
        self._damaged = True
        self._deaths += 1

    def settled(self, simulation: Simulation) -> None:
        """Check that each state counts exactly the tuples of committed runs."""
        for component in simulation.runner.plan.stateful_components():
            counted = self._counted.get(component, Counter())
            state = simulation.runner.state(component)
            if state != counted:
                raise BrokenPromise(
                    f"the state of {component} is {state}, and what was counted in committed "
                    f"batches is {dict(counted)}"
                )

    def statuses(self, message: Message) -> set[str]:
        """Return how the tuples of a message's tree ended in the last batch.

        Holds ``missing`` if tuples did not arrive. Empty if nobody reads the message.
        """
        spout, number = message
        found: set[str] = set()
        waiting = [(spout, Child("default", f"{spout}:{number}"))]
        while waiting:
            source, child = waiting.pop()
            for spec, edge in self._topology.subscribers(source, child.stream):
                if child.to is not None and child.to != spec.id:
                    continue
                entries = self._batch.get((spec.id, child.uid), [])
                match edge.grouping:
                    case All():
                        copies = spec.parallelism
                    case Custom(Some()):
                        copies = Some.copies(child.uid, spec.parallelism)
                    case Direct() if child.to is None:
                        copies = 0
                    case _:
                        copies = 1
                # a tuple doubled twice arrives three times: XOR sees no difference
                if len(entries) < copies or (len(entries) > copies and not self._damaged):
                    found.add("missing")
                for entry in entries:
                    found.add(entry.status)
                    waiting += [(spec.id, grandchild) for grandchild in entry.children]
        return found

    def _is_cause(self, message: Message, failure: Failure, found: set[str]) -> bool:
        match failure.reason:
            case Reason.FAILED:
                return "failed" in (self._anywhere() if self._damaged else found)
            case Reason.ERROR:
                return "raised" in (self._anywhere() if self._damaged else found)
            case Reason.TIMEOUT:
                return message in self._forgotten
            case Reason.LOST:
                blamed = failure.message == DIED_OF_IT.message
                return self._deaths > 0 if blamed else self._damaged
        return False

    def _anywhere(self) -> set[str]:
        """Return how any tuples of the batch ended.

        In a damaged batch some tuples have lost their parents, so walking the trees misses some.
        """
        return {entry.status for entries in self._batch.values() for entry in entries}
