"""Levels: from which level on each component logs, changeable while the topology runs."""

import logging
from typing import final

from sparkstorm.errors import ConfigError
from sparkstorm.planning.plan import Plan
from sparkstorm.tasks.report import LINES
from sparkstorm.texts.logs import logger_of

__all__ = ["Levels"]


@final
class Levels:
    """The levels that people have set; workers hear of them with the next batch. Thread-safe.

    Args:
        plan: the topology's plan.
    """

    def __init__(self, plan: Plan) -> None:
        self._components = plan.topology.components
        self._levels: dict[str, int] = {}

    def set(self, component: str, level: str) -> None:
        """Let a component log from a level of Python's ``logging`` on; ``NOTSET`` forgets it.

        Raises:
            ConfigError: there is no such component, or no such level.
        """
        if component not in self._components:
            raise ConfigError(f"there is no component {component!r}")
        number = logging.getLevelNamesMapping().get(level.upper())
        if number is None:
            raise ConfigError(f"there is no level {level!r}: write DEBUG, INFO, WARNING or ERROR")
        levels = {**self._levels, component: number}
        self._levels = {name: one for name, one in levels.items() if one}
        logger_of(f"{LINES}.{component}").setLevel(number)

    @property
    def known(self) -> tuple[tuple[str, int], ...]:
        """Each component that people have set a level for, with the level's number."""
        return tuple(sorted(self._levels.items()))
