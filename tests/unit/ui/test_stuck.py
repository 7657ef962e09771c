"""Why is my offset stuck? The page says so in plain words."""

from dataclasses import replace

import pytest

from sparkstorm.testing.control.figures import partitions_of
from sparkstorm.ui.pages.stuck import strip_of, verdict_of

STUCK, MOVING, _, DONE, HALTED = partitions_of(18_204)


def test_a_failed_message_holds_the_offset() -> None:
    """The text names the offset, the bolt, the exception and what waits."""
    verdict = verdict_of(STUCK)
    assert verdict.word == "stuck"
    for part in ("offset 18204", "in enrich", "KeyError: 'sku-8812'", "4,890 later messages"):
        assert part in verdict.why


@pytest.mark.parametrize(
    ("partition", "word"),
    [
        (MOVING, "moving"),
        (DONE, "done"),
        (HALTED, "halted"),
        (replace(DONE, lag=3), "behind"),
        (replace(DONE, paused=True, in_flight=9), "paused"),
        (replace(STUCK, halted=True), "stuck"),
    ],
)
def test_each_state_has_its_word(partition: object, word: str) -> None:
    """A failed message explains more than that somebody has halted the partition."""
    assert verdict_of(partition).word == word  # type: ignore[arg-type]


def test_a_resting_topology_is_the_reason_of_a_lag() -> None:
    """Nothing is wrong with the partition then."""
    assert verdict_of(replace(DONE, lag=3), resting=True).word == "resting"


def test_one_message_among_thousands_is_seen_in_the_strip() -> None:
    """A part that is there has a width, and the parts fill the strip."""
    strip = strip_of(STUCK)
    assert strip.retry >= 1
    assert sum((strip.beyond, strip.flying, strip.retry, strip.unread)) == pytest.approx(100, abs=1)
