"""Whether what was acked is what would be committed, from what the runs of stages tell."""

import random

import pytest

from sparkstorm.tasks.state_runs import StateRun, StateRuns, fingerprint

PLACE, OTHER = (1, 0), (1, 1)


@pytest.mark.parametrize(
    ("told", "states", "differing"),
    [
        ([], {}, []),
        ([], {PLACE: 1}, []),
        (["a"], {PLACE: 1}, []),
        (["a", "a"], {PLACE: 2}, []),
        (["a", "b"], {PLACE: 2}, [PLACE]),
        (["a", "a", "b"], {PLACE: 3}, [PLACE]),
        (["a"], {PLACE: 2}, [PLACE]),
        (["a", "a"], {PLACE: 1}, [PLACE]),
        (["a"], {}, [PLACE]),
        ([], {PLACE: 2}, [PLACE]),
    ],
)
def test_runs_are_the_same_or_differ(
    told: list[str], states: dict[tuple[int, int], int], differing: list[tuple[int, int]]
) -> None:
    """Each state must be of a run that is known, and all runs must have done the same."""
    runs = [StateRun(PLACE, each) for each in told]
    assert StateRuns(runs, states).differing() == differing


def test_partitions_are_apart() -> None:
    """Two partitions do not do the same, and need not."""
    runs = [StateRun(PLACE, "a"), StateRun(OTHER, "b")]
    assert StateRuns(runs, {PLACE: 1, OTHER: 1}).differing() == []


def test_the_order_of_packets_does_not_count() -> None:
    """Spark hands them over in any order."""
    packets = [random.Random(n).randbytes(50) for n in range(9)]
    assert fingerprint(packets, []) == fingerprint(packets[::-1], [])


@pytest.mark.parametrize(
    ("received", "sent"),
    [([b"a", b"b", b"b"], [b"c"]), ([b"a"], [b"c"]), ([b"a", b"b"], [b"d"]), ([b"a", b"b"], [])],
)
def test_any_other_packet_shows(received: list[bytes], sent: list[bytes]) -> None:
    """One more, one less, another one; and what is received is not what is sent."""
    usual = fingerprint([b"a", b"b"], [(0, b"c")])
    assert fingerprint(received, [(0, data) for data in sent]) != usual
    assert fingerprint([b"c"], [(0, b"a"), (0, b"b")]) != usual
