"""A small Kestrel: ``python kestrel_process.py PORT FOLDER`` serves its memcache protocol.

Written from Kestrel's guide. Each queue has a journal: items survive the end of the process, and
items that were open then are ready again. Served are ``get`` with the options ``open``, ``close``,
``abort``, ``peek`` and ``t=ms``, ``set``, ``delete``, ``flush``, ``flush_all``, ``stats``,
``version`` and ``quit``. A connection has at most one open item of a queue.
"""

import asyncio
import itertools
import json
import signal
import sys
from collections import deque
from pathlib import Path

_VERSION = "2.4.1"
_END = b"END\r\n"


class Queue:
    """The items of one queue, and the journal of what came and went."""

    def __init__(self, journal: Path) -> None:
        items = _replay(journal)
        self.ready: deque[tuple[int, bytes]] = deque(items.items())
        self.open = 0
        self.total = 0
        self.arrived = asyncio.Event()
        self._numbers = itertools.count(max(items, default=0) + 1)
        self._file = journal.open("ab", buffering=0)

    def add(self, body: bytes) -> None:
        """Put an item at the end."""
        number = next(self._numbers)
        self._file.write(json.dumps([number, body.hex()]).encode() + b"\n")
        self.ready.append((number, body))
        self.total += 1
        self._wake()

    def remove(self, number: int) -> None:
        """Write down that an item is gone."""
        self._file.write(json.dumps([number]).encode() + b"\n")

    def put_back(self, item: tuple[int, bytes]) -> None:
        """Put an item that was open at the front."""
        self.open -= 1
        self.ready.appendleft(item)
        self._wake()

    async def first(self, wait_secs: float) -> bool:
        """Wait for an item; return whether there is one."""
        deadline = asyncio.get_running_loop().time() + wait_secs
        while not self.ready:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            try:
                await asyncio.wait_for(self.arrived.wait(), left)
            except TimeoutError:
                return False
        return True

    def _wake(self) -> None:
        self.arrived.set()
        self.arrived = asyncio.Event()


def _replay(journal: Path) -> dict[int, bytes]:
    """Return the items that a journal leaves; a last line that is cut short never counted."""
    items: dict[int, bytes] = {}
    lines = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
    for line in lines:
        number, *body = json.loads(line)
        if body:
            items[number] = bytes.fromhex(body[0])
        else:
            items.pop(number, None)
    return items


class Server:
    """All queues, and the connections' commands."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._queues: dict[str, Queue] = {}
        for journal in folder.glob("*.journal"):
            self._queue(journal.stem)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection; its open items are ready again when it ends."""
        held: dict[str, tuple[int, bytes]] = {}
        try:
            while (line := await reader.readline()).endswith(b"\n"):
                words = line.decode("utf-8", "replace").split()
                if words and words[0].lower() == "quit":
                    break
                writer.write(await self._answer(words, reader, held))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            for name, item in held.items():
                self._queues[name].put_back(item)
            writer.close()

    async def _answer(
        self, words: list[str], reader: asyncio.StreamReader, held: dict[str, tuple[int, bytes]]
    ) -> bytes:
        match [word.lower() for word in words[:1]] + words[1:]:
            case ["get", key]:
                return await self._get(key, reader, held)
            case ["set", key, _, _, size]:
                body = await reader.readexactly(int(size))
                await reader.readexactly(2)
                self._queue(key).add(body)
                return b"STORED\r\n"
            case ["delete" | "flush" as command, name]:
                for number, _ in self._queue(name).ready:
                    self._queue(name).remove(number)
                self._queue(name).ready.clear()
                return b"DELETED\r\n" if command == "delete" else _END
            case ["stats"]:
                return self._stats()
            case ["version"]:
                return f"VERSION {_VERSION}\r\n".encode()
        return b"ERROR\r\n"

    async def _get(
        self, key: str, reader: asyncio.StreamReader, held: dict[str, tuple[int, bytes]]
    ) -> bytes:
        name, *options = key.split("/")
        queue, wait_secs = self._queue(name), 0.0
        for option in options:
            if option.startswith("t="):
                wait_secs = int(option[2:]) / 1000
        if "abort" in options or "close" in options:
            self._end(name, held, abort="abort" in options)
            if "open" not in options:
                return _END
        if name in held and "peek" not in options:
            return b"CLIENT_ERROR Close current item first\r\n"
        if not await queue.first(wait_secs) or reader.at_eof():  # nobody may wait any longer
            return _END
        item = queue.ready[0]
        if "peek" not in options:
            queue.ready.popleft()
            if "open" in options:
                held[name] = item
                queue.open += 1
            else:
                queue.remove(item[0])
        return f"VALUE {name} 0 {len(item[1])}\r\n".encode() + item[1] + b"\r\n" + _END

    def _end(self, name: str, held: dict[str, tuple[int, bytes]], *, abort: bool) -> None:
        item = held.pop(name, None)
        if item is None:
            return
        queue = self._queues[name]
        if abort:
            queue.put_back(item)
        else:
            queue.remove(item[0])
            queue.open -= 1

    def _stats(self) -> bytes:
        lines = [f"STAT version {_VERSION}"]
        for name, queue in sorted(self._queues.items()):
            lines += [
                f"STAT queue_{name}_items {len(queue.ready)}",
                f"STAT queue_{name}_bytes {sum(len(body) for _, body in queue.ready)}",
                f"STAT queue_{name}_total_items {queue.total}",
                f"STAT queue_{name}_open_transactions {queue.open}",
            ]
        return "".join(f"{line}\r\n" for line in [*lines, "END"]).encode()

    def _queue(self, name: str) -> Queue:
        if name not in self._queues:
            self._queues[name] = Queue(self._folder / f"{name}.journal")
        return self._queues[name]


async def main(port: int, folder: Path) -> None:
    """Serve until a signal ends the process."""
    server = Server(folder)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", port, limit=1 << 20)
    async with listening:
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
