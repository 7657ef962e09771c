"""Queues as sources: systems that hand out messages by a lease.

:mod:`queue` says what the lease keeper asks of a system. :mod:`keeper` keeps the leases, without a
thread or a clock of its own. :mod:`spout` is the base of all queue spouts; each system has one
file, which alone names the system's client library.
"""

from sparkstorm.queues.counts import KeeperCounts
from sparkstorm.queues.decoding import WithDelivery
from sparkstorm.queues.keeper import LeaseKeeper
from sparkstorm.queues.queue import Delivery, Lease, Queue, QueueLostError
from sparkstorm.queues.spout import QueueSpout

__all__ = [
    "Delivery",
    "KeeperCounts",
    "Lease",
    "LeaseKeeper",
    "Queue",
    "QueueLostError",
    "QueueSpout",
    "WithDelivery",
]
