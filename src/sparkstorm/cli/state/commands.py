"""The work of ``sparkstorm state show``: find the component in the manifest, read its state."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from sparkstorm.checkpoint.manifest import KeptState, Manifest
from sparkstorm.checkpoint.spark_messages import SparkMessages
from sparkstorm.errors import CheckpointError, ConfigError
from sparkstorm.state.spaces.base import entry_id
from sparkstorm.state.view import Item, items_of, items_of_entry

__all__ = ["StateOptions", "StateRow", "read_state"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StateOptions:
    """The options of the command line."""

    name: str
    component: str
    checkpoint: str
    keys: Sequence[str] = ()
    state: str | None = None
    verbose: bool = False


@final
@dataclass(frozen=True, slots=True)
class StateRow:
    """An item of the state, and the number of its task, as errors and logs name the task."""

    task: int
    item: Item


@contextmanager
def read_state(options: StateOptions) -> Iterator[Iterator[StateRow]]:
    """Read the chosen state, as of the last committed batch.

    Raises:
        CheckpointError: there is no checkpoint, or it is another topology's.
        ConfigError: the component keeps no state.
    """
    from sparkstorm.spark.driver.session import make_session
    from sparkstorm.spark.driver.storage.checkpoint import open_files
    from sparkstorm.spark.driver.storage.kept_state import StateReader

    _check_folder(options.checkpoint)
    with ExitStack() as stack:
        log = stack.enter_context(SparkMessages(shown=options.verbose))
        with log.opened() as output:
            session = make_session("sparkstorm-state", "local[2]", output=output)
        stack.callback(session.stop)
        manifest = Manifest.read(open_files(options.checkpoint, session))
        kept = _kept(manifest, options)
        assert manifest is not None  # noqa: S101 - _kept has seen to it
        reader = StateReader(session, options.checkpoint, manifest.stages)
        yield _rows(reader, kept, options)


def _check_folder(place: str) -> None:
    if "://" in place and not place.startswith("file:"):
        return
    path = Path(place.removeprefix("file://").removeprefix("file:"))
    if not (path / "sparkstorm").is_dir():
        raise CheckpointError(
            f"{place} is no checkpoint folder of sparkstorm: give the DIR that was given to "
            f"sparkstorm run --checkpoint"
        )


def _kept(manifest: Manifest | None, options: StateOptions) -> KeptState:
    where = f"the checkpoint {options.checkpoint}"
    if manifest is None:
        raise CheckpointError(f"{where} holds no state: no topology has run on it yet")
    if manifest.topology != options.name:
        raise CheckpointError(
            f"{where} belongs to the topology {manifest.topology!r}, not to {options.name!r}: "
            f"give that name, or another checkpoint"
        )
    kept = manifest.state.get(options.component)
    if kept is None:
        known = ", ".join(sorted(manifest.state)) or "none"
        raise ConfigError(
            f"{options.component!r} keeps no state in {where}: the components that do are {known}"
        )
    return kept


def _rows(reader: Any, kept: KeptState, options: StateOptions) -> Iterator[StateRow]:
    wanted = [key for text in options.keys for key in _meanings(text)]
    for row in _all_rows(reader, kept, options.component, wanted):
        if options.state is not None and row.item.space != options.state:
            continue
        if not wanted or any(row.item.key == key for key in wanted):
            yield row


def _all_rows(
    reader: Any, kept: KeptState, component: str, wanted: Sequence[Any]
) -> Iterator[StateRow]:
    for task, store in reader.chunks(component, kept.tasks):
        yield from (StateRow(kept.first + task, item) for item in items_of(store))
    if kept.kind.endswith("rocksdb"):
        ends = [entry_id(key) for key in wanted] or [""]
        for task, name, data in reader.entries(component, kept.tasks, ends):
            yield from (StateRow(kept.first + task, item) for item in items_of_entry(name, data))


def _meanings(text: str) -> list[Any]:
    """Return the keys a text may stand for: the text itself, and its value as JSON."""
    try:
        value = json.loads(text)
    except ValueError:
        return [text]
    return [text] if isinstance(value, dict) else [text, _hashable(value)]


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
