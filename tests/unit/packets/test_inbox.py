"""The inbox: what is said of tuples that belong to groves is said of each of their roots, once."""

import numpy as np

from sparkstorm.acking.groves import Groves
from sparkstorm.acking.lineage import Lineage
from sparkstorm.packets.batch_info import BatchInfo, Retried
from sparkstorm.packets.inbox import ACKED, Inbox
from sparkstorm.packets.packet import Body, Packet, PacketWriter
from sparkstorm.verdicts import Failure, Reason

BATCH = BatchInfo(number=3, retried=(Retried(1, 2, 4), Retried(9, 1, 2), Retried(30, 5, 7)))


def u64(*values: int) -> np.ndarray:
    """Values as ids."""
    return np.array(values, np.uint64)


def inbox() -> Inbox:
    """Two tuples of one grove, one of another and of a root of its own, one of a root alone."""
    groves = Groves()
    near, far = groves.plant(u64(1, 2, 3)), groves.plant(u64(3, 9))
    lineage = Lineage(
        u64(near, near, far, 5, 6), u64(70, 71, 72, 73, 74), np.array([0, 1, 2, 4, 5])
    )
    data = PacketWriter(7).data(stream=0, target=9, body=Body.encode([], 4), lineage=lineage)
    return Inbox([Packet.decode(data)], 9, BATCH, groves)


def failure(text: str) -> Failure:
    """A failure with this text."""
    return Failure(reason=Reason.FAILED, message=text)


def test_open_tuples_hold_each_root_once() -> None:
    """As long as one of them is open."""
    found = inbox()
    assert found.open_roots().tolist() == [1, 2, 3, 5, 6, 9]
    found.status[0] = found.status[2] = ACKED
    assert found.open_roots().tolist() == [1, 2, 3, 6]
    assert found.are_open(np.array([1, 3]))
    assert not found.are_open(np.array([1, 2]))


def test_time_outs_start_anew_for_each_root() -> None:
    """Of those tuples that were named, also twice."""
    found = inbox()
    found.resets += [2, 2, 3]
    assert found.reset_roots().tolist() == [3, 5, 6, 9]


def test_each_root_fails_once_with_the_first_reason() -> None:
    """However many of its tuples fail."""
    found = inbox()
    first, second, third = map(failure, ("first", "second", "third"))
    found.fail(2, third)
    found.fail(1, second)
    found.fail(0, first)
    assert list(found.failed().items()) == [
        *((root, first) for root in (1, 2, 3)),
        *((root, third) for root in (5, 9)),
    ]


def test_a_tuple_is_the_latest_try_of_any_of_its_roots() -> None:
    """A grove's are looked at together."""
    found = inbox()
    assert [found.attempt(index) for index in range(4)] == [4, 4, 2, 1]
