"""Spark's Python daemon, but what a worker has loaded is kept out of its per-task collections.

Given to every Spark side of the benchmarks, so that none wins by it.
"""

import gc
import socket

from pyspark import daemon

_original = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Run one task as Spark does, then freeze what is there."""
    code: int = _original(sock, authenticated)
    gc.freeze()
    return code


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
