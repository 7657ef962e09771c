"""The rows of a tree: every tuple once, below the tuple that it is anchored to."""

from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.control.views import AttemptView, NodeView, TreeView
from sparkstorm.testing.control import FakeControl
from sparkstorm.ui.pages.tree import rows_of


def attempt_of(parents: list[list[int]]) -> AttemptView:
    nodes = [
        NodeView(
            id=str(number),
            parents=[str(one) for one in above],
            source="a",
            source_task=1,
            stream="s",
            at=float(number),
            secs=0.5,
        )
        for number, above in enumerate(parents)
    ]
    return AttemptView(
        number=1, batch=1, began=0.0, ended=None, outcome="running", tree=TreeView(nodes=nodes)
    )


def test_tuples_stand_below_their_first_anchor() -> None:
    """A tuple with two anchors stands below the first, and names the other."""
    found = FakeControl().message("m00000")
    assert found is not None
    rows = rows_of(found.attempts[0])
    assert [(row.node.id, row.depth) for row in rows] == [
        ("a1", 0),
        ("b1", 1),
        ("c2", 2),
        ("b2", 1),
        ("c1", 2),
        ("d1", 3),
    ]
    assert rows[-1].others == ["b2"]


@given(st.lists(st.lists(st.integers(0, 30), max_size=3), max_size=30))
def test_every_tuple_has_one_row(parents: list[list[int]]) -> None:
    """Anchors that are unknown, or that form a circle, hide no tuple; bars stay inside."""
    rows = rows_of(attempt_of(parents))
    assert sorted(int(row.node.id) for row in rows) == list(range(len(parents)))
    for row in rows:
        assert row.start is not None
        assert 0 <= row.start <= row.start + row.width <= 100.01


def test_a_chain_of_thousands_is_cut_and_not_endless() -> None:
    """A tree may be as deep as it is large."""
    rows = rows_of(attempt_of([[], *([number] for number in range(5000))]))
    assert len(rows) == 200
    assert max(row.depth for row in rows) == 12
