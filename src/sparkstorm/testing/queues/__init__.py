"""Queues for tests: one in memory, and the suite that every queue spout passes."""

from sparkstorm.testing.queues.conformance import QueueBench, QueueConformance, hold_and_die
from sparkstorm.testing.queues.memory import MemoryQueue, MemoryQueueServer, MemoryQueueSpout
from sparkstorm.testing.queues.play import SpoutPlay

__all__ = [
    "MemoryQueue",
    "MemoryQueueServer",
    "MemoryQueueSpout",
    "QueueBench",
    "QueueConformance",
    "SpoutPlay",
    "hold_and_die",
]
