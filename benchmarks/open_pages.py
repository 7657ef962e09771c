"""How the web page fares with many readers: many open pages, many unfinished messages.

python -m benchmarks.open_pages [PAGES] [MESSAGES] [SECONDS]

Prints how long views take while so many pages are kept fresh, how often a driver is asked, and how
much the page's memory grows in the second half.
"""

import argparse
import asyncio
import resource
import statistics
import threading
import time

from sparkstorm.testing.control import FakeControl, FakeRegistry
from sparkstorm.ui import Server

VIEWS = ("", "/messages", "/message?id=m00000", "/letters", "/partitions", "/batches", "/logs")
PATH = "/topologies/shop-7f3a"


async def fetch(port: int, path: str) -> tuple[int, float]:
    """Return the status of a view, and how long it took."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return int(answer.split(maxsplit=2)[1]), time.perf_counter() - began


async def look(port: int, path: str, events: list[int]) -> None:
    """Keep a page open, and count its events."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    ask = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
    writer.write(ask.encode())
    while line := await reader.readline():
        events[0] += line.startswith(b"event: part")


async def measure(port: int, pages: int, secs: float) -> list[float]:
    """Return how long views take beside the open pages."""
    events = [0]
    looking = [
        asyncio.create_task(look(port, PATH + VIEWS[number % len(VIEWS)], events))
        for number in range(pages)
    ]
    took, halves = [], []
    ends = time.monotonic() + secs
    while time.monotonic() < ends:
        for view in VIEWS:
            status, length = await fetch(port, PATH + view)
            assert status == 200
            took.append(length)
        halves.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        await asyncio.sleep(0.5)
    for task in looking:
        task.cancel()
    print(f"events sent: {events[0] / secs:.0f} per second")
    print(f"memory: {halves[len(halves) // 2]:.0f} MB after half the time, {halves[-1]:.0f} MB")
    return took


def main() -> None:
    """Open the pages, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="?", type=int, default=100)
    parser.add_argument("messages", nargs="?", type=int, default=10_000)
    parser.add_argument("seconds", nargs="?", type=int, default=30)
    chosen = parser.parse_args()
    pages, messages, secs = chosen.pages, chosen.messages, chosen.seconds
    shop = FakeControl("shop", messages=messages)
    server = Server(FakeRegistry([shop]), port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        took = sorted(asyncio.run(measure(server.port, pages, secs)))
    finally:
        server.stop()
        thread.join()
    print(f"{pages} open pages, {messages:,} unfinished messages, {secs} s, {len(took)} views")
    p50, p99 = statistics.median(took), took[int(len(took) * 0.99)]
    print(
        f"a view takes {1000 * p50:.0f} ms (p50), {1000 * p99:.0f} ms (p99), "
        f"{1000 * took[-1]:.0f} ms at most"
    )
    print(
        "questions per second: "
        + ", ".join(f"{name} {count / secs:.2f}" for name, count in shop.asked.most_common())
    )


if __name__ == "__main__":
    main()
