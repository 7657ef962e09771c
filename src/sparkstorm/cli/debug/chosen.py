"""The chosen letter, and the chosen component: can a debugger stop in it?"""

from pathlib import Path

from sparkstorm.checkpoint.manifest import Manifest
from sparkstorm.cli.letters.commands import LetterOptions, find, open_stores
from sparkstorm.cli.loading import Loaded
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.errors import ConfigError
from sparkstorm.multilang.shell_bolt import ShellBolt

__all__ = ["check_component", "find_letter"]


def find_letter(
    id_: str, *, topology: str | None, checkpoint: str | None, folder: Path | None
) -> tuple[DeadLetter, Manifest | None]:
    """Return a letter by its id, and the manifest of its checkpoint.

    Args:
        id_: the id, or how it begins.
        topology: the topology's name.
        checkpoint: the checkpoint folder.
        folder: another folder of letters.

    Raises:
        ConfigError: there is no such letter, or there are several.
        CheckpointError: there is no such folder.
    """
    options = LetterOptions(ids=[id_], topology=topology, checkpoint=checkpoint, folder=folder)
    with open_stores(options) as stores:
        found = find(stores, options)[0]
        manifest = None if checkpoint is None else Manifest.read(found.store.files)
        return found.letters[0], manifest


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
