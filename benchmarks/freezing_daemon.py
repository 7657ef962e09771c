"""Spark's Python daemon, with a worker's loaded objects kept out of the collection per task.

Every Spark side of the benchmarks runs with this daemon, so that none has an advantage.
"""

import gc
import socket

from pyspark import daemon

_original = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Run one task as Spark does, then freeze all living objects."""
    code: int = _original(sock, authenticated)
    gc.freeze()
    return code


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
