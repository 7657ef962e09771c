"""A Redis stream as a queue: what a consumer group has not acked is under a lease.

Redis knows no end of a lease, but how long an entry has been idle. An entry that is idle for
``lease_secs`` belongs to anyone who claims it (``XAUTOCLAIM``). An extension sets the idle time
back.

``XCLAIM`` takes an entry from whoever has it. So a script first looks whether the lease is still
ours. The delivery count tells: every hand-out raises the count, an extension does not. Thus even
two runs with the same consumer name cannot take each other's leases for their own.
"""

import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, cast, final

from sparkstorm.errors import ConfigError, EnvironmentFault
from sparkstorm.queues.queue import Delivery, Lease, QueueLostError
from sparkstorm.queues.redis.server import Redis, redis_errors, translated

__all__ = ["RedisStreamQueue"]

_SWEEPS = 4
"""So often in a lease's length a queue looks for entries whose lease has ended."""

_LONGEST_PAUSE_SECS = 1.0
"""The longest pause between two looks: entries that were given back wait no longer."""

_FOREVER_MS = 1 << 40

_FIRST = "0-0"
_SHORTEST_LEASE_SECS = 0.1

_TAKEN, _TRIMMED = 2, 3

_MOVE_IDLE = """
local answers = {}
for at = 4, #ARGV, 2 do
    local id = ARGV[at]
    local found = redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1)[1]
    local answer = 2
    if found and found[2] == ARGV[2] and found[4] == tonumber(ARGV[at + 1]) then
        local kept = redis.call(
            'XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id, 'IDLE', ARGV[3], 'JUSTID')
        answer = #kept == 1 and 1 or 3
    elseif not found and #redis.call('XRANGE', KEYS[1], id, id) == 0 then
        answer = 3
    end
    answers[#answers + 1] = answer
end
return answers
"""
"""Sets the idle time of entries; answers for each: kept (1), taken by another (2), trimmed (3)."""


class _EntryLease(NamedTuple):
    """An entry, and how often it had been handed out when the lease began."""

    entry: str
    deliveries: int


@final
class RedisStreamQueue:
    """One consumer of a consumer group of a stream.

    Args:
        server: the Redis.
        stream: the stream's key.
        group: the consumer group.
        consumer: the consumer's name, the same after a restart.
        field: the field of an entry that is the body.
        lease_secs: an entry that is idle for so long may be claimed by another consumer.
        start: the id from which a missing group begins to read: ``"0"`` for all entries of the
            stream, ``"$"`` for entries to come. None: a missing group is a fault.
        delete: whether to delete acked entries from the stream (``XDEL``).

    Attributes:
        trimmed: how many entries were trimmed, or deleted, before they were acked.
        reports: texts for people; whoever shows a text takes it out.
    """

    leases_survive = True

    def __init__(
        self,
        server: Redis,
        stream: str,
        group: str,
        consumer: str,
        *,
        field: str = "body",
        lease_secs: float = 60.0,
        start: str | None = None,
        delete: bool = False,
    ) -> None:
        if not lease_secs >= _SHORTEST_LEASE_SECS:
            raise ConfigError(
                f"lease_secs is {lease_secs}: give a number from {_SHORTEST_LEASE_SECS} up"
            )
        for name, value in {"stream": stream, "group": group, "consumer": consumer}.items():
            if not value:
                raise ConfigError(f"the {name} has no name")
        self.trimmed = 0
        self.reports: deque[str] = deque(maxlen=100)
        self._server = server
        self._stream = stream
        self._group = group
        self._consumer = consumer
        self._field = field
        self._lease_secs = lease_secs
        self._start = start
        self._delete = delete
        self._client: Any = None
        self._cursor = _FIRST
        self._sweep_at = 0.0
        self._trimmed_here: dict[str, None] = {}

    @property
    def name(self) -> str:
        """The stream, its group and the server."""
        return f"stream {self._stream} (group {self._group}) of Redis at {self._server.place}"

    @property
    def lease_secs(self) -> float:
        """As given."""
        return self._lease_secs

    def connect(self) -> None:
        """Connect, and look whether the stream and the group are there and may be used.

        Raises:
            EnvironmentFault: credentials, rights, a missing stream or group.
        """
        self.close()
        self._client = self._server.client()
        try:
            with translated(self._server.place):
                self._join()
        except BaseException:
            self.close()
            raise
        self._cursor, self._sweep_at = _FIRST, 0.0

    def take(self, limit: int, wait_secs: float) -> Sequence[Delivery]:
        """Claim entries whose lease has ended; if there are none, read new ones."""
        if not limit:
            return ()
        with self._talking():
            return self._claim(limit) or self._read(limit, wait_secs)

    def extend(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Set the idle time of entries to 0; return those that another consumer has got."""
        return self._move_idle(leases, 0)

    def settle(self, leases: Collection[Lease]) -> Collection[Lease]:
        """Ack entries, and delete them if asked to."""
        ids = [cast(_EntryLease, lease).entry for lease in leases]
        if not ids:
            return ()
        with self._talking():
            pipeline = self._client.pipeline(transaction=True)
            pipeline.execute_command("XACK", self._stream, self._group, *ids)
            if self._delete:
                pipeline.execute_command("XDEL", self._stream, *ids)
            pipeline.execute()
        for entry in ids:
            self._trimmed_here.pop(entry, None)
        return ()

    def give_back(self, leases: Collection[Lease]) -> None:
        """Let the leases end now: the next consumer to look claims the entries."""
        self._move_idle(leases, self._lease_ms)

    def close(self) -> None:
        """Close the connection; entries stay pending until their lease ends."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(redis_errors.RedisError, OSError):
                client.close()

    def __repr__(self) -> str:
        return f"RedisStreamQueue({self.name}, consumer {self._consumer})"

    # --- commands --------------------------------------------------------------------------------

    def _join(self) -> None:
        """Make the group if asked to; then claim nothing.

        The claim shows a wrong address, missing rights, a wrong type, and an old server.
        """
        key, group = self._stream, self._group
        try:
            if self._start is not None:
                self._make_group()
            self._run("XAUTOCLAIM", self._consumer, _FOREVER_MS, _FIRST, "COUNT", 1, "JUSTID")
        except redis_errors.ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            raise EnvironmentFault(
                f"Redis at {self._server.place} has no stream {key!r} with a group {group!r}: "
                f"make them (XGROUP CREATE {key} {group} 0 MKSTREAM), or pass start='0'"
            ) from error

    def _make_group(self) -> None:
        try:
            self._client.execute_command(
                "XGROUP", "CREATE", self._stream, self._group, self._start, "MKSTREAM"
            )
        except redis_errors.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):  # the group is there
                raise

    def _run(self, command: str, *words: str | int) -> Any:
        return self._client.execute_command(command, self._stream, self._group, *words)

    @contextmanager
    def _talking(self) -> Iterator[None]:
        if self._client is None:
            raise QueueLostError(f"the connection of {self.name} is closed")
        with translated(self._server.place):
            yield

    def _claim(self, limit: int) -> list[Delivery]:
        """Claim entries that are idle for longer than a lease, from where the last look ended."""
        now = time.monotonic()
        if now < self._sweep_at:
            return []
        idle = self._lease_ms
        answer = self._run("XAUTOCLAIM", self._consumer, idle, self._cursor, "COUNT", limit)
        self._cursor = _text(answer[0])
        if self._cursor == _FIRST:
            self._sweep_at = now + min(self._lease_secs / _SWEEPS, _LONGEST_PAUSE_SECS)
        if len(answer) > 2:  # from Redis 7.0 on; the entries are no longer pending
            self._note_trimmed(map(_text, answer[2]))
        return self._claimed([entry for entry in answer[1] if entry is not None])

    def _claimed(self, entries: Sequence[Any]) -> list[Delivery]:
        """Ask how often claimed entries have been handed out."""
        if not entries:
            return []
        pipeline = self._client.pipeline(transaction=False)
        pipeline.response_callbacks.clear()
        for entry, _ in entries:
            pipeline.execute_command("XPENDING", self._stream, self._group, entry, entry, 1)
        found = pipeline.execute()
        return [
            self._delivery(entry, pending[0][3])
            for entry, pending in zip(entries, found, strict=True)
            if pending  # else another has acked the entry this moment
        ]

    def _read(self, limit: int, wait_secs: float) -> list[Delivery]:
        """Read entries that nobody has got."""
        # BLOCK 0 would wait for ever.
        wait = ("BLOCK", round(wait_secs * 1000)) if wait_secs >= 0.001 else ()
        group = ("GROUP", self._group, self._consumer)
        streams = ("STREAMS", self._stream, ">")
        answer = self._client.execute_command("XREADGROUP", *group, "COUNT", limit, *wait, *streams)
        return [self._delivery(entry, 1) for _, entries in answer or () for entry in entries]

    def _delivery(self, entry: Any, deliveries: int) -> Delivery:
        name, flat = entry[0].decode(), entry[1]
        fields = {_text(flat[at]): flat[at + 1] for at in range(0, len(flat), 2)}
        return Delivery(
            message_id=name,
            lease=_EntryLease(name, deliveries),
            body=fields.get(self._field, b""),
            deliveries=deliveries,
            attributes={"fields": fields},
        )

    def _move_idle(self, leases: Collection[Lease], idle_ms: int) -> list[Lease]:
        """Set the idle time of entries; return the leases that another consumer has taken."""
        mine = [cast(_EntryLease, lease) for lease in leases]
        if not mine:
            return []
        words = [str(word) for lease in mine for word in lease]
        with self._talking():
            answers = self._client.execute_command(
                "EVAL", _MOVE_IDLE, 1, self._stream, self._group, self._consumer, idle_ms, *words
            )
        found = list(zip(mine, answers, strict=True))
        # Nobody else gets a trimmed entry. So its lease has no end.
        self._note_trimmed(lease.entry for lease, answer in found if answer == _TRIMMED)
        return [lease for lease, answer in found if answer == _TAKEN]

    def _note_trimmed(self, entries: Iterable[str]) -> None:
        new = [entry for entry in entries if entry not in self._trimmed_here]
        self._trimmed_here.update(dict.fromkeys(new))
        if new:
            self.trimmed += len(new)
            self.reports.append(
                f"{self.name}: {len(new):,} entries were trimmed, or deleted, before they were "
                f"acked: raise MAXLEN where entries are added, or add consumers"
            )

    @property
    def _lease_ms(self) -> int:
        return round(self._lease_secs * 1000)


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")
