"""The window of messages in flight against a dictionary that knows every root."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sparkstorm import Failure, Reason
from sparkstorm.acking.failed import FailedRoots
from sparkstorm.sources.in_flight import InFlight

LOST = Failure(reason=Reason.LOST, message="lost")
AWAY = Failure(reason=Reason.ERROR, message="away")


class Window(RuleBasedStateMachine):
    """Loads come; verdicts come in any order, twice, and on roots that never were."""

    def __init__(self) -> None:
        super().__init__()
        self.window = InFlight[str]()
        self.model: dict[int, str] = {}
        self.next = 7

    @rule(count=st.integers(1, 6), gap=st.integers(0, 3))
    def add(self, count: int, gap: int) -> None:
        """Add a load; its letters stand for what its source keeps."""
        first = self.next + gap
        name = f"load {first}"
        self.window.add(first, count, name)
        self.model.update({first + place: name for place in range(count)})
        self.next = first + count

    @rule(data=st.data())
    def hear(self, data: st.DataObject) -> None:
        """Give verdicts on some roots; each is told once, and to its own load."""
        known = st.integers(0, self.next + 3)
        acked = data.draw(st.sets(known, max_size=12))
        failed = data.draw(st.dictionaries(known, st.sampled_from([LOST, AWAY]), max_size=12))
        failed = {root: why for root, why in failed.items() if root not in acked}
        told: dict[int, tuple[str, Failure | None]] = {}
        ascending = np.array(sorted(acked), np.uint64)
        for one in self.window.verdicts(ascending, FailedRoots.of(failed)):
            assert len(one.acked) or len(one.failed) or one.first in self.window
            told.update({one.first + place: (one.messages, None) for place in one.acked.tolist()})
            told.update({root: (one.messages, why) for root, why in one.failed.items()})
        wanted: dict[int, tuple[str, Failure | None]]
        wanted = {root: (self.model[root], None) for root in acked if root in self.model}
        wanted |= {
            root: (self.model[root], why) for root, why in failed.items() if root in self.model
        }
        assert told == wanted
        for root in wanted:
            del self.model[root]

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Take a whole load out."""
        firsts = list(self.window)
        if firsts:
            first = data.draw(st.sampled_from(firsts))
            name = self.window.remove(first)
            self.model = {root: other for root, other in self.model.items() if other != name}

    @invariant()
    def agrees(self) -> None:
        """What is left of each load is what the model has of it."""
        assert len(self.window) == len(self.model)
        left = {first + n for first in self.window for n in self.window.left(first).tolist()}
        assert left == set(self.model)


TestWindow = Window.TestCase
TestWindow.settings = settings(stateful_step_count=20, deadline=None)
