"""Failures: what is said of them, and how they travel."""

import json

import pytest

from sparkstorm.verdicts import Failure, Reason


@pytest.mark.parametrize("reason", Reason)
def test_a_failure_comes_back_from_json(reason: Reason) -> None:
    """With every field, through text."""
    failure = Failure(
        reason=reason, component="a", task=3, message="m", traceback="t\nü", attempt=4
    )
    assert Failure.from_json(json.loads(json.dumps(failure.to_json()))) == failure


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Failure(reason=Reason.TIMEOUT), "timeout"),
        (Failure(reason=Reason.FAILED, message="no"), "failed: no"),
        (Failure(reason=Reason.ERROR, component="a", task=3), "error in a (task 3)"),
        (Failure(reason=Reason.LOST, component="a", task=3, message="x"), "lost in a (task 3): x"),
    ],
)
def test_a_failure_is_a_sentence(failure: Failure, text: str) -> None:
    """The reason, where it was, and why; each only if it is known."""
    assert str(failure) == text
