"""Identities: a message keeps its name over its deliveries, and no two messages share a name."""

from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.queues.rabbitmq.identities import Identities, Identity


def test_a_redelivery_gets_the_name_of_a_lost_message() -> None:
    """Messages of one content are as good as each other."""
    known = Identities()
    lost = {known.name("a", redelivered=False) for _ in range(3)}
    known.lose()
    assert {known.name("a", redelivered=True) for _ in range(3)} == lost


def test_a_first_delivery_never_gets_the_name_of_a_lost_message() -> None:
    """The keeper may know the lost message as settled, and would delete the new one unseen."""
    known = Identities()
    lost = known.name("a", redelivered=False)
    known.lose()
    assert known.name("a", redelivered=False) != lost


def test_nothing_is_kept_of_settled_messages() -> None:
    """A run of millions of messages needs no more memory than its pending ones."""
    known = Identities()
    for _ in range(3):
        known.free([known.name("a", redelivered=False), known.name("b", redelivered=False)])
    assert len(known) == 0
    assert known.name("a", redelivered=False) == ("a", 1)


def test_the_oldest_lost_messages_are_forgotten_first() -> None:
    """Lost messages that other consumers got are not kept for ever."""
    known = Identities(most_lost=2)
    names = [known.name(content, redelivered=False) for content in "abc"]
    known.lose()
    assert len(known) == 2
    assert known.name("c", redelivered=True) == names[2]


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("name"), st.sampled_from("ab"), st.booleans()),
        st.tuples(st.just("free"), st.integers(0, 5), st.just(False)),
        st.tuples(st.just("lose"), st.just(0), st.just(False)),
    ),
    max_size=60,
)


@given(_STEPS)
def test_no_two_messages_share_a_name(steps: list[tuple[str, object, bool]]) -> None:
    """Whatever is delivered, settled and lost: a name in hand, or lost, is given to no other."""
    known = Identities()
    in_hand: list[Identity] = []
    lost: set[Identity] = set()
    for what, which, redelivered in steps:
        if what == "name":
            name = known.name(str(which), redelivered=redelivered)
            assert name not in in_hand
            assert redelivered or name not in lost
            if redelivered and any(content == which for content, _ in lost):
                assert name in lost
            in_hand.append(name)
            lost.discard(name)
        elif what == "lose":
            known.lose()
            lost.update(in_hand)
            in_hand.clear()
        elif in_hand and isinstance(which, int):
            known.free([in_hand.pop(which % len(in_hand))])
        assert len(known) == len(in_hand) + len(lost)
