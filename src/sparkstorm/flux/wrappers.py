"""What Flux brings along: shell components by their arguments, and a bolt that logs."""

from collections.abc import Sequence
from typing import Any

from sparkstorm.components.bolt import BasicBolt
from sparkstorm.components.collector import BasicCollector
from sparkstorm.multilang import ShellBolt, ShellSpout
from sparkstorm.texts.logs import logger_of
from sparkstorm.tuples import Tuple

__all__ = ["FluxShellBolt", "FluxShellSpout", "LogInfoBolt", "shell_bolt", "shell_spout"]

_logger = logger_of(__name__)


class LogInfoBolt(BasicBolt):
    """Logs each tuple."""

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Log a tuple."""
        _logger.info("%s", tup)


class _Streams:
    """The config methods of Flux's shell components."""

    outputs: Any

    def setDefaultStream(self, fields: Sequence[str]) -> None:
        """Declare the default stream."""
        self.setNamedStream("default", fields)

    def setNamedStream(self, name: str, fields: Sequence[str]) -> None:
        """Declare a stream."""
        streams = dict(self.outputs) if isinstance(self.outputs, dict) else {}
        self.outputs = {**streams, name: list(fields)}

    def addComponentConfig(self, key: str, value: Any) -> None:
        """Accept a setting of the child's; children get the whole topology's settings."""


class FluxShellBolt(_Streams, ShellBolt):
    """A shell bolt that Flux configures."""


class FluxShellSpout(_Streams, ShellSpout):
    """A shell spout that Flux configures."""


def shell_bolt(command: Sequence[str], fields: Sequence[str] = ()) -> FluxShellBolt:
    """Return a shell bolt, by the arguments of Flux's ``FluxShellBolt``."""
    return FluxShellBolt(command, outputs={"default": list(fields)} if fields else {})


def shell_spout(command: Sequence[str], fields: Sequence[str] = ()) -> FluxShellSpout:
    """Return a shell spout, by the arguments of Flux's ``FluxShellSpout``."""
    return FluxShellSpout(command, outputs={"default": list(fields)} if fields else {})
