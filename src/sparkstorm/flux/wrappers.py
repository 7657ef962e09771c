"""Classes that Flux's documents name: shell components, a bolt that logs, Storm's test words."""

import random
from collections.abc import Sequence
from typing import Any

from sparkstorm.components.bolt import BasicBolt
from sparkstorm.components.collector import BasicCollector, SpoutCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import Spout
from sparkstorm.components.stateful import StatefulBolt
from sparkstorm.config import Config
from sparkstorm.multilang import ShellBolt, ShellSpout
from sparkstorm.streams import Outputs
from sparkstorm.texts.logs import logger_of
from sparkstorm.tuples import Tuple

__all__ = [
    "FluxShellBolt",
    "FluxShellSpout",
    "LogInfoBolt",
    "TestWordCounter",
    "TestWordSpout",
    "shell_bolt",
    "shell_spout",
]

_WORDS = ("nathan", "mike", "jackson", "golda", "bertels")

_logger = logger_of(__name__)


class LogInfoBolt(BasicBolt):
    """Logs each tuple."""

    def execute(self, tup: Tuple, collector: BasicCollector) -> None:
        """Log a tuple."""
        _logger.info("%s", tup)


class TestWordSpout(Spout):
    """Emits one of five names, ten times a second, without end and untracked, as Storm's does."""

    __test__ = False  # pytest would take it for a test
    outputs: Outputs = ("word",)

    def open(self, config: Config, context: TaskContext, collector: SpoutCollector) -> None:
        """Start to draw names."""
        self._collector, self._clock = collector, context.clock
        self._random = random.Random(context.task)  # noqa: S311 - no secret
        self._next = context.clock.monotonic()

    def next_tuple(self) -> None:
        """Emit a name, if it is time."""
        if self._clock.monotonic() >= self._next:
            self._next += 0.1
            self._collector.emit([self._random.choice(_WORDS)])


class TestWordCounter(StatefulBolt):
    """Counts each word, and emits it with its count."""

    __test__ = False
    outputs: Outputs = ("word", "count")

    def execute(self, tup: Tuple) -> None:
        """Count a word."""
        self.collector.emit([tup[0], self.state.add(tup[0])], anchors=tup)
        self.collector.ack(tup)


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
