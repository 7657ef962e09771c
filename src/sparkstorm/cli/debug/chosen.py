"""The chosen letter, and the chosen component: can a debugger stop in it?"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from sparkstorm.checkpoint.files import LocalFiles
from sparkstorm.checkpoint.manifest import Manifest
from sparkstorm.cli.letters.commands import Found, LetterOptions, find, open_stores
from sparkstorm.cli.loading import Loaded, load_again
from sparkstorm.cli.running.commands import find as running
from sparkstorm.cli.terminal import say
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.origin import Origin
from sparkstorm.errors import ConfigError
from sparkstorm.multilang.shell_bolt import ShellBolt
from sparkstorm.sources.unfinished import message_name
from sparkstorm.texts.showing import shown

__all__ = ["Chosen", "check_component", "find_letter", "find_running", "load_known", "title_of"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The message to debug.

    Attributes:
        letter: the dead letter, or an unfinished message as one.
        manifest: the manifest of the checkpoint; None without one.
        checkpoint: the checkpoint's folder; None without one.
        origin: how the topology was loaded, as far as it is known.
        told_by: who tells the origin, for people.
        trusted: whether the origin cannot be somebody else's.
    """

    letter: DeadLetter
    manifest: Manifest | None = None
    checkpoint: str | None = None
    origin: Origin | None = None
    told_by: str = ""
    trusted: bool = False


def find_letter(
    id_: str, *, topology: str | None, checkpoint: str | None, folder: Path | None
) -> Chosen:
    """Return a letter by its id, or by its spout's name for the message.

    Args:
        id_: the id, or how it begins, or the name.
        topology: the topology's name.
        checkpoint: the checkpoint folder.
        folder: another folder of letters.

    Raises:
        ConfigError: there is no such letter, or there are several.
        CheckpointError: there is no such folder.
    """
    options = LetterOptions(topology=topology, checkpoint=checkpoint, folder=folder)
    with open_stores(options) as stores:
        named = [
            Found(found.store, [letter])
            for found in find(stores, options)
            for letter in found.letters
            if message_name(letter.msg_id) == id_
        ]
        if len(named) != 1:
            named = find(stores, replace(options, ids=[id_]))
        store, letter = named[0].store, named[0].letters[0]
        return Chosen(
            letter=letter,
            manifest=None if checkpoint is None else Manifest.read(store.files),
            checkpoint=checkpoint,
            origin=Origin.read(store),
            told_by=f"the last run on {checkpoint}" if checkpoint else "its last run",
            trusted=Origin.is_mine(store),
        )


def find_running(message: str, topology: str) -> Chosen:
    """Return an unfinished message of a running topology, by its id or its spout's name for it.

    Raises:
        ConfigError: there is no such topology or message, or nobody knows the payload.
    """
    entry, control = running(topology)
    facts = control.copy(message)
    if facts is None:
        raise ConfigError(
            f"no message {message!r} of {topology!r} is unfinished: sparkstorm messages {topology} "
            f"lists those that are. One that was given up is a dead letter"
        )
    letter = DeadLetter.from_json(facts)
    if letter.values is None:
        raise ConfigError(f"the payload of the message {message!r} is not known: {letter.note}")
    files = LocalFiles.of_checkpoint(entry.checkpoint) if entry.checkpoint else None
    manifest = None if files is None else Manifest.read(files)
    return Chosen(
        letter=letter,
        manifest=manifest,
        checkpoint=None if manifest is None else entry.checkpoint,
        origin=None if entry.origin is None else Origin(**entry.origin),
        told_by=f"the running topology {entry.id}",
        trusted=True,  # only this user may write to the registry
    )


def load_known(chosen: Chosen) -> tuple[Loaded, Origin]:
    """Load the topology from where its last run had it, and say from where.

    Raises:
        ConfigError: nobody knows, arguments are missing, or somebody else may have said it.
        TopologyError: names the file and its fault.
    """
    origin = chosen.origin
    if origin is None:
        raise ConfigError(
            "the topology's file is not known: only sparkstorm run notes it. Name it behind the "
            "letter, as for sparkstorm run"
        )
    shown_target = f"{origin.target!r} (in {origin.folder!r})"
    if not chosen.trusted:
        raise ConfigError(
            f"{chosen.told_by} names {shown_target} as the topology's file, but others may have "
            f"written that: look at the file, and name it behind the letter"
        )
    if origin.cut:
        raise ConfigError(
            f"the topology's file is {shown_target}, but some of its arguments or settings look "
            f"secret and were not noted: name the file, its arguments and settings"
        )
    behind = f" with the arguments {list(origin.args)}" if origin.args else ""
    say(f"loading {shown_target}{behind}, as {chosen.told_by} did", err=True)
    return load_again(origin), origin


def title_of(letter: DeadLetter) -> str:
    """Return how people call a letter; the run of a message that is unfinished is empty."""
    return f"dead letter {letter.id}" if letter.run else f"message {shown(letter.msg_id)}"


def check_component(loaded: Loaded, letter: DeadLetter, component: str) -> None:
    """Refuse components whose code a debugger cannot show, or that would write outside.

    Raises:
        ConfigError: names the component and the mend.
    """
    if not component:
        raise ConfigError(
            f"the dead letter {letter.id} names no component ({letter.failure.reason.value}): "
            f"choose the bolt to stop in with --break COMPONENT"
        )
    spec = loaded.topology.components.get(component)
    if spec is None:
        known = ", ".join(spec.id for spec in loaded.topology.bolts)
        raise ConfigError(
            f"the topology has no component {component!r}: choose another with --break; its bolts "
            f"are {known}"
        )
    if spec.is_spout:
        raise ConfigError(
            f"{component!r} is a spout: a dead letter begins behind its spout, so choose a bolt "
            f"with --break"
        )
    if isinstance(spec.component, ShellBolt):
        raise ConfigError(
            f"{component!r} is a shell bolt: its code runs in a child process, where no "
            f"debugger of Python's can stop. Log there, or stop in a bolt before with --break"
        )
    # By name, since the class needs an extra. A Kafka sink is a committer: it only stages.
    if type(spec.component).__name__ == "KafkaBolt":
        raise ConfigError(
            f"{component!r} writes to Kafka, and debug writes nothing: stop in a bolt before with "
            f"--break"
        )
