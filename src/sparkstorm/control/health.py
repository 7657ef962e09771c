"""Health: whether a topology moves, from what its driver says."""

from sparkstorm.control.views import SituationView

__all__ = ["why_not_ready"]


def why_not_ready(situation: SituationView, most_secs: float) -> str:
    """Return why a topology does not move; empty if it does.

    A topology that waits for its sources is ready: it asks them again and again, and commits
    nothing. A batch that takes longer than the limit counts as stuck until its commit.

    Args:
        situation: how the topology stands.
        most_secs: for how long polls, and the commit of a batch that runs, may be waited for.
    """
    if situation.status != "ACTIVE":
        return f"its status is {situation.status}"
    if situation.running_secs > most_secs:
        return (
            f"batch {situation.running_batch} has been running for {situation.running_secs:.0f} s"
        )
    if situation.polled_secs > most_secs:
        return f"no spout was polled for {situation.polled_secs:.0f} s"
    slowest = max(situation.spouts, key=lambda one: situation.spouts[one], default="")
    if slowest and situation.spouts[slowest] > most_secs:
        return (
            f"spout {slowest!r} was not called for {situation.spouts[slowest]:.0f} s: a call of "
            f"its code takes that long"
        )
    return ""
