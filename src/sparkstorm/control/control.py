"""The control of one running topology: every question and order that other processes may send."""

from collections.abc import Sequence
from typing import Any, Protocol

from sparkstorm.control.views import (
    GroupView,
    LettersView,
    LetterView,
    LineView,
    MessageDetailView,
    MessagesView,
    ReplayView,
    SituationView,
    TopologyView,
    WindowName,
    WindowView,
)

__all__ = ["Control"]


class Control(Protocol):
    """Answers for a topology: the driver itself, or a client that asks the driver.

    All methods may be called by any thread. A client raises
    :class:`~sparkstorm.control.client.DriverGoneError` once the driver has ended, and
    :class:`~sparkstorm.errors.ConfigError` for an order that names nothing.
    """

    # --- look ---

    def topology(self) -> TopologyView:
        """Return the topology as it was submitted."""
        ...

    def situation(self) -> SituationView:
        """Return how it stands."""
        ...

    def window(self, window: WindowName) -> WindowView:
        """Return the metrics of a window."""
        ...

    def messages(
        self,
        *,
        state: str | None = None,
        spout: str | None = None,
        component: str | None = None,
        name: str | None = None,
        limit: int = 100,
    ) -> MessagesView:
        """Return unfinished messages, the oldest first.

        Args:
            state: only those of a state.
            spout: only those of a spout.
            component: only those held by a component, or that failed there last.
            name: only those whose name contains this text.
            limit: how many at most.
        """
        ...

    def message(self, message: str) -> MessageDetailView | None:
        """Return a message by its id, or by its name; None if nothing is known of it."""
        ...

    def copy(self, message: str) -> dict[str, Any] | None:
        """Return an unfinished message, by its id or name, as the JSON of a dead letter.

        None if there is none, or a letter without values if the payload is not known. The source
        may be read once more.
        """
        ...

    def lines(
        self,
        *,
        component: str | None = None,
        message: str | None = None,
        level: str | None = None,
        limit: int = 200,
    ) -> list[LineView]:
        """Return the last lines of components, the oldest first."""
        ...

    def letter_groups(self) -> list[GroupView]:
        """Return the dead letters by kind, the largest group first."""
        ...

    def letters(
        self, *, group: str | None = None, limit: int = 100, offset: int = 0
    ) -> LettersView:
        """Return dead letters, the newest first."""
        ...

    def letter(self, letter: str) -> LetterView | None:
        """Return a dead letter; None if there is none of this id."""
        ...

    # --- steer ---

    def activate(self) -> None:
        """Let spouts give messages again."""
        ...

    def deactivate(self) -> None:
        """Let spouts give no new messages; pending messages go on."""
        ...

    def kill(self, wait_secs: float | None = None) -> None:
        """End the topology: deactivate, finish pending messages for so long, then stop.

        Args:
            wait_secs: how long pending messages may take; the message time-out for None.
        """
        ...

    def pause(self, spout: str, partitions: Sequence[str] = ()) -> None:
        """Read no new messages of partitions, or of the whole spout."""
        ...

    def resume(self, spout: str, partitions: Sequence[str] = ()) -> None:
        """Read partitions again."""
        ...

    def retry(self, messages: Sequence[str]) -> int:
        """Let waiting messages be tried in the next batch; return how many will be."""
        ...

    def follow(self, name: str, *, spout: str | None = None) -> None:
        """Keep the trees of messages whose name or payload contains a text, from now on.

        Args:
            name: the text.
            spout: only messages of this spout; their payload is then not looked at.
        """
        ...

    def unfollow(self, name: str) -> None:
        """Follow such messages no longer."""
        ...

    def followed(self) -> list[str]:
        """Return the texts that are followed."""
        ...

    def set_level(self, component: str, level: str) -> None:
        """Let a component log from a level of Python's ``logging`` on."""
        ...

    def replay(
        self,
        *,
        letters: Sequence[str] = (),
        group: str | None = None,
        values: dict[str, Any] | None = None,
    ) -> str:
        """Emit dead letters again; return the name of the request.

        Args:
            letters: the letters.
            group: all letters of a group instead.
            values: new values of fields, for a single letter; the original stays in the letter.
        """
        ...

    def replays(self) -> list[ReplayView]:
        """Return the requests of this run, the newest first."""
        ...

    def discard(self, *, letters: Sequence[str] = (), group: str | None = None) -> int:
        """Remove dead letters for good; return how many."""
        ...
