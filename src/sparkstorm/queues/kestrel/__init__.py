"""Kestrel: a spout that reads reliably over the memcache protocol; it needs no package."""

from sparkstorm.queues.kestrel.spout import KestrelSpout

__all__ = ["KestrelSpout"]
