"""The intake's counts after any adds, takes and returns."""

from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.sources.hosted.intake import Intake, LoadKey

KEYS = [LoadKey("a", tracked, attempt) for tracked in (True, False) for attempt in (1, 2)]
STEPS = st.tuples(st.sampled_from(KEYS), st.sampled_from(["add", "take", "return"]))


@given(st.lists(STEPS, max_size=40), st.integers(1, 3))
def test_counts_are_those_of_the_messages(steps: list[tuple[LoadKey, str]], limit: int) -> None:
    """A message that was taken counts again once it is put back."""
    intake = Intake()
    waiting = dict.fromkeys(KEYS, 0)
    for key, step in steps:
        if step == "add":
            intake.add(key, ["x"], 1, None)
            waiting[key] += 1
        elif waiting[key]:
            taken = intake.take(key, limit)
            if step == "return":
                intake.put_back(key, taken)
            else:
                waiting[key] -= len(taken)
        assert len(intake) == sum(waiting.values())
        assert intake.tracked == sum(count for one, count in waiting.items() if one.tracked)
