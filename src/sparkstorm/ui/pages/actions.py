"""The orders that a page's forms give: each answers with a sentence."""

import json
from collections.abc import Callable, Sequence
from typing import Any, final

from sparkstorm.control.views import LetterView
from sparkstorm.errors import ConfigError
from sparkstorm.texts.wording import counted
from sparkstorm.ui.answers import NotThereError
from sparkstorm.ui.watch import Watch

__all__ = ["ACTIONS", "Form", "wait_secs_of"]

_LONGEST_WAIT_SECS = 10 * 365 * 86_400.0


@final
class Form:
    """The fields of a form, each of which may stand several times."""

    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self._fields = fields

    def all(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for one, value in self._fields if one == name and value]

    def one(self, name: str) -> str:
        """Return the value of a field; an error names the field that is missing."""
        values = self.all(name)
        if not values:
            raise ConfigError(f"The field {name!r} is empty.")
        return values[0]

    def named(self, prefix: str) -> dict[str, str]:
        """Return the fields whose names begin alike, by the rest of the name."""
        return {
            name.removeprefix(prefix): value
            for name, value in self._fields
            if name.startswith(prefix)
        }


Action = Callable[[Watch, Form], str]


def activate(watch: Watch, form: Form) -> str:
    """Let spouts give messages again."""
    watch.order(lambda control: control.activate())
    return "Spouts give messages again."


def deactivate(watch: Watch, form: Form) -> str:
    """Let spouts rest."""
    watch.order(lambda control: control.deactivate())
    return "Spouts rest. Pending messages go on."


def kill(watch: Watch, form: Form) -> str:
    """End the topology."""
    text = "".join(form.all("wait_secs"))
    wait_secs = wait_secs_of(text) if text else None
    watch.order(lambda control: control.kill(wait_secs))
    return "The topology ends: spouts rest, and pending messages may finish first."


def wait_secs_of(text: str) -> float:
    """Return seconds; an error says which are meant.

    >>> wait_secs_of("30")
    30.0
    """
    try:
        secs = float(text)
    except ValueError:
        secs = -1.0
    if not 0 <= secs <= _LONGEST_WAIT_SECS:
        raise ConfigError(f"{text[:40]!r} is no length of time: give seconds, 0 or more.")
    return secs


def retry(watch: Watch, form: Form) -> str:
    """Let waiting messages run in the next batch."""
    names = form.all("message")
    if not names:
        raise ConfigError("No message is chosen.")
    going = watch.order(lambda control: control.retry(names))
    if going == len(names):
        return f"{counted(going, 'message')} will be tried in the next batch."
    return (
        f"{counted(going, 'message')} of {len(names):,} will be tried in the next batch. The "
        "others no longer wait for a retry."
    )


def follow(watch: Watch, form: Form) -> str:
    """Keep the trees of some messages."""
    name = form.one("name")
    spout = "".join(form.all("spout")[:1]) or None
    watch.order(lambda control: control.follow(name, spout=spout))
    return f"The trees of messages with {name!r} are kept from now on."


def unfollow(watch: Watch, form: Form) -> str:
    """Keep such trees no longer."""
    name = form.one("name")
    watch.order(lambda control: control.unfollow(name))
    return f"The trees of messages with {name!r} are no longer kept."


def pause(watch: Watch, form: Form) -> str:
    """Halt partitions."""
    spout, partitions = form.one("spout"), form.all("partition")
    watch.order(lambda control: control.pause(spout, partitions))
    return f"{', '.join(partitions) or spout} is halted: no new messages are read."


def resume(watch: Watch, form: Form) -> str:
    """Read partitions again."""
    spout, partitions = form.one("spout"), form.all("partition")
    watch.order(lambda control: control.resume(spout, partitions))
    return f"{', '.join(partitions) or spout} is read again."


def level(watch: Watch, form: Form) -> str:
    """Set the level from which on a component logs."""
    component, wanted = form.one("component"), form.one("level")
    watch.order(lambda control: control.set_level(component, wanted))
    return f"{component} logs from {wanted} on."


def replay(watch: Watch, form: Form) -> str:
    """Emit letters again: some, or all of a group, or a single edited one."""
    letters, group = _chosen(form)
    values = _edited(watch, letters, form) if form.named("value:") else None
    name = watch.order(
        lambda control: control.replay(letters=letters, group=group, values=values)
    )  # fmt: skip
    return f"The request {name} is on its way; its progress is on the page of dead letters."


def discard(watch: Watch, form: Form) -> str:
    """Remove letters for good."""
    letters, group = _chosen(form)
    gone = watch.order(lambda control: control.discard(letters=letters, group=group))
    return f"{counted(gone, 'dead letter')} removed for good."


def _chosen(form: Form) -> tuple[list[str], str | None]:
    letters, groups = form.all("letter"), form.all("group")
    if not letters and not groups:
        raise ConfigError("No letter is chosen.")
    return ([], groups[0]) if groups else (letters, None)


def _edited(watch: Watch, letters: Sequence[str], form: Form) -> dict[str, Any] | None:
    """Return a letter's new values; None if none differs from the letter's own."""
    found: LetterView | None = watch.letter(letters[0]) if letters else None
    if found is None:
        raise NotThereError("This letter is no longer there: it was replayed or discarded.")
    values = {name: _value(name, text) for name, text in form.named("value:").items()}
    return None if values == found.values else values


def _value(name: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f'The field {name!r} is no JSON ({error}). A text stands in quotes: "text".'
        ) from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


ACTIONS: dict[str, Action] = {
    "activate": activate,
    "deactivate": deactivate,
    "kill": kill,
    "retry": retry,
    "follow": follow,
    "unfollow": unfollow,
    "pause": pause,
    "resume": resume,
    "level": level,
    "replay": replay,
    "discard": discard,
}
"""The orders by the last part of their address."""
