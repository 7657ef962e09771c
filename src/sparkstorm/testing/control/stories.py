"""The messages of the fake control: unfinished ones, their trees, and dead letters."""

from collections.abc import Sequence
from dataclasses import replace

from sparkstorm.control.views import (
    AttemptView,
    LetterView,
    LineView,
    MessageDetailView,
    MessageView,
    NodeView,
    TreeView,
)
from sparkstorm.testing.control.scene import TRACE, USER_FRAME

__all__ = ["detail_of", "letters_of", "lines_of", "messages_of"]

WHY = "KeyError: 'sku-8812'"

_STATES = ("retry", "open", "running", "retry", "waiting")
_HOLDERS = {"retry": "enrich", "open": "total", "running": "score", "waiting": ""}


def messages_of(count: int, names: Sequence[str] = ()) -> list[MessageView]:
    """Return unfinished messages, the oldest first; ``names`` are taken in turn, if there are."""
    return [_message(number, count, names) for number in range(count)]


def _message(number: int, count: int, names: Sequence[str]) -> MessageView:
    state = _STATES[number % len(_STATES)]
    failed = state == "retry"
    spout = "clicks" if number % 7 == 6 else "orders"
    own = f"orders-{number % 2}:{18_204 + number}" if spout == "orders" else f"click-{number}"
    name = names[number % len(names)] if names else own
    return MessageView(
        id=f"m{number:05}",
        spout=spout,
        task=3 if spout == "clicks" else 1 + number % 2,
        name=name,
        state=state,  # type: ignore[arg-type]
        attempt=3 if failed else 1,
        age_secs=600.0 * (count - number) / count,
        due_secs=float(4 + number % 30) if failed else None,
        held_by=[_HOLDERS[state]] if _HOLDERS[state] else [],
        reason="error" if failed else "",
        why=(names[number % len(names)] if names else WHY) if failed else "",
    )


def detail_of(message: MessageView, now: float) -> MessageDetailView:
    """Return a message with its attempts: failed ones, then the one that goes on."""
    began = now - message.age_secs
    failed = [_attempt(number, began + 40.0 * number, message) for number in (1, 2)]
    running = _attempt(message.attempt, now - 2.0, replace(message, reason="", why=""))
    return MessageDetailView(
        id=message.id,
        spout=message.spout,
        task=message.task,
        name=message.name,
        state=message.state,
        attempts=failed if message.state == "retry" else [running],
    )


def _attempt(number: int, began: float, message: MessageView) -> AttemptView:
    failed = bool(message.reason)
    return AttemptView(
        number=number,
        batch=2210 + number,
        began=began,
        ended=began + 0.31 if failed else None,
        outcome=message.reason or "running",
        component="enrich" if failed else "",
        task=7 if failed else None,
        why=message.why,
        frame=USER_FRAME if failed else "",
        trace=TRACE + message.why if failed else "",
        tree=_tree(message, began),
        lines=[
            LineView(
                at=began + 0.05,
                component="enrich",
                task=7,
                level="WARNING",
                text=f"no price for {message.name}",
                message=message.id,
                attempt=number,
            )
        ],
    )


def _tree(message: MessageView, began: float) -> TreeView:
    def node(
        name: str,
        parents: list[str],
        ends: tuple[str, int, str, int],
        at: float | None,
        secs: float | None,
        state: str,
    ) -> NodeView:
        source, source_task, component, task = ends
        failed = state == "failed"
        return NodeView(
            id=name,
            parents=parents,
            source=source,
            source_task=source_task,
            stream="default",
            component=component,
            task=task if at is not None else None,
            values={"order": message.name, "price": "12.50"},
            at=None if at is None else began + at,
            secs=secs,
            state=state,  # type: ignore[arg-type]
            reason="error" if failed else "",
            why=message.why if failed else "",
            frame=USER_FRAME if failed else "",
            trace=TRACE if failed else "",
        )

    end = "failed" if message.reason else "acked"
    last = "emitted" if message.reason else "open"
    return TreeView(
        nodes=[
            node("a1", [], (message.spout, message.task, "parse", 4), 0.02, 0.011, "acked"),
            node("b1", ["a1"], ("parse", 4, "enrich", 7), 0.06, 0.22, end),
            node("b2", ["a1"], ("parse", 4, "score", 9), 0.07, 0.034, "acked"),
            node("c1", ["b2"], ("score", 9, "store", 13), 0.12, 0.018, "acked"),
            node("c2", ["b1"], ("enrich", 7, "total", 11), None, None, last),
            node("d1", ["c1", "b2"], ("store", 13, "", 0), None, None, "emitted"),
        ],
        cut=3,
    )


def letters_of(now: float, texts: Sequence[str] = ()) -> list[LetterView]:
    """Return dead letters of three kinds, the newest first; ``texts`` fill all foreign fields."""
    kinds = (
        ("enrich-key", "enrich", "error", WHY, USER_FRAME, 23),
        ("parse-json", "parse", "error", "JSONDecodeError: Expecting value", "shop/bolts.py:12", 7),
        ("store-timeout", "store", "timeout", "not acked within 30 s", "", 4),
    )
    letters = []
    for group, component, reason, why, frame, count in kinds:
        for number in range(max(count, len(texts))):
            text = texts[number % len(texts)] if texts else ""
            letter = LetterView(
                id=f"{group}-{number:03}",
                group=group,
                spout="orders",
                name=text or f"orders-0:{17_000 + number}",
                stream="default",
                values={"order": text or f'{{"sku": "sku-8812", "n": {number}}}', "n": number},
                reason=reason,
                component=component,
                task=7,
                why=text or why,
                frame=text or frame,
                trace=text or (TRACE if reason == "error" else ""),
                attempts=9,
                first_time=now - 7200 - 60 * number,
                last_time=now - 60 * number,
                replays=1 if number == 2 else 0,
                replayable=number != 5,
                note="" if number != 5 else "the source no longer has the payload",
            )
            letters.append(letter)
    return sorted(letters, key=lambda letter: -letter.last_time)


def lines_of(now: float, texts: Sequence[str] = ()) -> list[LineView]:
    """Return the last lines of components, the oldest first."""
    levels = ("INFO", "INFO", "WARNING", "INFO", "ERROR")
    components = ("parse", "enrich", "enrich", "store", "enrich")
    return [
        LineView(
            at=now - 120 + number,
            component=components[number % 5],
            task=7,
            level=levels[number % 5],
            text=texts[number % len(texts)] if texts else f"order {18_204 + number} has no price",
            trace=TRACE if number % 5 == 4 else "",
            message=f"m{number % 40:05}",
            attempt=1 + number % 3,
        )
        for number in range(120)
    ]
