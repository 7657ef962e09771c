"""The spouts that come with sparkstorm; spouts for foreign systems load their clients on use.

``iterator.py`` emits any Python iterable, ``lines.py`` reads text files on the executors, and
``replaying.py`` is a base for hosted spouts with retries.
"""

from sparkstorm.spouts.iterator import IteratorSpout
from sparkstorm.spouts.lines import LinesSpout
from sparkstorm.spouts.replaying import ReplayingSpout

__all__ = ["IteratorSpout", "LinesSpout", "ReplayingSpout"]
