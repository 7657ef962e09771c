"""Spouts that come with sparkstorm; those for foreign systems load their client when used."""

from sparkstorm.spouts.iterator import IteratorSpout
from sparkstorm.spouts.lines import LinesSpout
from sparkstorm.spouts.replaying import ReplayingSpout

__all__ = ["IteratorSpout", "LinesSpout", "ReplayingSpout"]
