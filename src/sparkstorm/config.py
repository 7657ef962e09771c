"""Settings of a topology: one typed table, with Storm's dotted keys as aliases."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from sparkstorm.errors import ConfigError
from sparkstorm.texts.credentials import hidden

__all__ = ["COMPONENT_KEYS", "Config", "setting_name"]

COMPONENT_KEYS = frozenset(
    {
        "dead_letter_sink",
        "dead_letters",
        "max_retries",
        "max_spout_pending",
        "retry_backoff_max_secs",
        "retry_backoff_secs",
        "state_backend",
        "tick_tuple_freq_secs",
        "user",
    }
)
"""The settings a single component may override, by ``add_configuration``."""

_STORMS_OWN = {
    "topology.workers": "Spark decides on its processes; see --master",
    "topology.debug": "--tap COMPONENT shows what a component emits",
    "topology.max.task.parallelism": "give each component its parallelism",
    "topology.worker.childopts": "give Spark's settings with --conf",
    "topology.stats.sample.rate": "all tuples are counted",
}
"""Settings of Storm that have another place here."""

_TARGETS_IN_MOST = 60
"""How many target times a batch may take by default: fixed costs of half a minute fit."""


class Config(BaseModel):
    """How a topology runs. Every field has a default; keys may be written as in Storm.

    >>> Config(message_timeout_secs=60).message_timeout_secs
    60.0
    >>> Config.parse({"topology.acker.executors": "0"}).acker_executors
    0
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    message_timeout_secs: float = Field(
        30.0,
        gt=0,
        alias="topology.message.timeout.secs",
        description="Seconds that a tree left open may take after its batch before it fails. "
        "Checked once per batch and when idle: a failure may come up to a tenth later, or at the "
        "end of the running batch.",
    )
    message_timeout_mode: Literal["emit", "progress"] = Field(
        "emit",
        alias="topology.message.timeout.mode",
        description="Count the time-out from the end of the batch of the emit, or of the last "
        "progress of the tree.",
    )
    enable_message_timeouts: bool = Field(
        True,
        alias="topology.enable.message.timeouts",
        description="Off: no tree ever times out (for tests and debugging).",
    )
    acker_executors: int | None = Field(
        None,
        ge=0,
        alias="topology.acker.executors",
        description="Number of acker tasks. Unset: one per partition, 16 at most. 0: no "
        "tracking; a hosted spout's ack is called at once, within its emit.",
    )
    max_spout_pending: int | None = Field(
        None,
        gt=0,
        alias="topology.max.spout.pending",
        description="Messages per spout task that may be pending at once. For a partitioned spout "
        "messages waiting for a retry count, too, so choose more than may fail at a time. "
        "Unset: bounded by topology.max.pending.bytes alone.",
    )
    max_pending_bytes: int = Field(
        256 * 1024 * 1024,
        gt=0,
        alias="topology.max.pending.bytes",
        description="Estimated bytes of all messages of a topology that may be pending at once.",
    )
    batch_target_secs: float = Field(
        1.0,
        gt=0,
        alias="topology.batch.target.secs",
        description="The time that a batch should take; the batch size adapts to it.",
    )
    batch_max_secs: float | None = Field(
        None,
        gt=0,
        alias="topology.batch.max.secs",
        description="The most time of a batch where every batch has a high fixed cost. Under a "
        "backlog, batches then outgrow the target, until the messages take longer than the fixed "
        "cost. If the fixed cost alone comes near this limit, messages get the target time on "
        "top. Unset: 60 times the target, but at most half of topology.batch.timeout.secs.",
    )
    batch_max_messages: int | None = Field(
        None,
        gt=0,
        alias="topology.batch.max.messages",
        description="A fixed upper limit of messages in a batch. Unset: only the time decides.",
    )
    batch_min_messages: int = Field(
        1_000,
        gt=0,
        alias="topology.batch.min.messages",
        description="A batch may always hold this many messages, however long it takes.",
    )
    batch_timeout_secs: float = Field(
        600.0,
        gt=0,
        alias="topology.batch.timeout.secs",
        description="A batch that takes longer is cancelled and run again with less.",
    )
    stats_latencies: bool = Field(
        True,
        alias="topology.stats.latencies",
        description="Time each ``execute``, for the latencies of the metrics.",
    )
    trace_messages: int = Field(
        100,
        ge=0,
        alias="topology.trace.messages",
        description="The most messages at a time whose trees are traced: retries first, then "
        "followed messages, and a message of each spout task in each batch. 0 traces none.",
    )
    tick_tuple_freq_secs: float | None = Field(
        None,
        gt=0,
        alias="topology.tick.tuple.freq.secs",
        description="Seconds between two tick tuples to each task of a bolt; usually set for "
        "single bolts. Ticks come even without other tuples. Unset: no ticks.",
    )
    shellbolt_max_pending: int = Field(
        1000,
        gt=0,
        alias="topology.shellbolt.max.pending",
        description="How many tuples each task of a shell bolt sends to its process before it has "
        "read the first of them.",
    )
    subprocess_timeout_secs: float = Field(
        30.0,
        gt=0,
        alias="topology.subprocess.timeout.secs",
        description="The process of a shell component that says nothing for so long, although it "
        "was asked, is killed and started again; its tuples fail.",
    )
    partitions: int | None = Field(
        None,
        gt=0,
        alias="topology.partitions",
        description="Partitions of every exchange. Unset: Spark's default parallelism. "
        "Fixed by the checkpoint once there is one.",
    )
    processing_guarantee: Literal["at-least-once", "exactly-once"] = Field(
        "at-least-once",
        alias="processing.guarantee",
        description="At least once: a failed message is tried again by itself. Exactly once: "
        "its whole batch is rolled back and run again, and committers apply each batch once.",
    )
    state_backend: Literal["memory", "rocksdb"] = Field(
        "memory",
        alias="topology.state.backend",
        description="Where a StatefulBolt keeps its keys. memory: all in the worker's memory, "
        "logged batch by batch. rocksdb: in Spark's RocksDB, each key read and written on its own "
        "(some 50 µs each), for state larger than memory. Fixed by the checkpoint once there is "
        "one.",
    )
    state_memory_bytes: int = Field(
        1024 * 1024 * 1024,
        ge=0,
        alias="topology.state.memory.bytes",
        description="Estimated bytes of state that each worker process keeps in memory between "
        "batches. A task without room reads its state again in every batch.",
    )
    max_retries: int | None = Field(
        16,
        ge=0,
        alias="topology.max.retries",
        description="How often sparkstorm's own spouts emit a failed message again before they "
        "give it up. None: for ever.",
    )
    retry_backoff_secs: float = Field(
        0.5,
        ge=0,
        alias="topology.retry.backoff.secs",
        description="Seconds before the first retry; doubled at each further retry.",
    )
    retry_backoff_max_secs: float = Field(
        300.0,
        ge=0,
        alias="topology.retry.backoff.max.secs",
        description="The longest wait between two tries of a message.",
    )
    dead_letters: Literal["files", "off"] = Field(
        "files",
        alias="topology.dead.letters",
        description="files: given-up messages are kept in files beside the checkpoint (without a "
        "checkpoint, in topology.dead.letters.folder). off: they are only counted.",
    )
    dead_letter_folder: str | None = Field(
        None,
        alias="topology.dead.letters.folder",
        description="A local folder of dead letters for runs without a checkpoint. "
        "Unset: sparkstorm/dead-letters in $XDG_STATE_HOME or ~/.local/state.",
    )
    dead_letter_sink: Any = Field(
        None,
        alias="topology.dead.letters.sink",
        description="A function that keeps a list of dead letters, instead of the files: a "
        "callable, or module:function. If the function raises, the letters go to the files.",
    )
    query_max_restarts: int | None = Field(
        5,
        ge=0,
        alias="topology.query.max.restarts",
        description="How often sparkstorm restarts a query that Spark has ended, before the run "
        "fails. None: for ever.",
    )
    query_restart_backoff_secs: float = Field(
        1.0,
        ge=0,
        alias="topology.query.restart.backoff.secs",
        description="Seconds before the first restart of the query; doubled at each further "
        "restart, up to a minute.",
    )
    query_restart_window_secs: float = Field(
        600.0,
        gt=0,
        alias="topology.query.restart.window.secs",
        description="After so many healthy seconds, restarts of the query are counted anew.",
    )
    query_restart_patience_secs: float = Field(
        600.0,
        ge=0,
        alias="topology.query.restart.patience.secs",
        description="How long sparkstorm restarts the query while Spark cannot start Python "
        "workers (the system kills them as they start, or is overloaded). Counted from the first "
        "such failure, and anew after each completed batch.",
    )
    lease_timeout_secs: float = Field(
        30.0,
        gt=0,
        alias="topology.lease.timeout.secs",
        description="A run without a sign of life for this long has lost its checkpoint: another "
        "run may take over. Use the same value for all runs on a checkpoint.",
    )
    checkpoint_fsync: bool = Field(
        True,
        alias="topology.checkpoint.fsync",
        description="Force the driver's files in the checkpoint, and dead letters, to the disk, so "
        "that they survive a power failure. False saves some milliseconds a batch.",
    )
    user: dict[str, Any] = Field(
        default_factory=dict,
        description="Your own settings, for your components; on the command line "
        "-c user.NAME=VALUE. Values named password, token, key or the like are hidden.",
    )

    def __init__(self, **settings: Any) -> None:
        _by_name(settings)
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise ConfigError(_explain(error)) from None

    @classmethod
    def parse(cls, settings: Mapping[str, object]) -> "Config":
        """Build a Config from keys as people write them: field names, Storm's keys, ``user.X``.

        Raises:
            ConfigError: names the key or value at fault, and the known ones.
        """
        user: dict[str, object] = {}
        known: dict[str, object] = {}
        for key, value in settings.items():
            if key.startswith("user.") and key != "user.":
                user[key.removeprefix("user.")] = value
            else:
                known[key] = None if value in ("none", "None", "null") else value
        given = known.get("user")
        if user and (given is None or isinstance(given, Mapping)):
            known["user"] = {**(given or {}), **user}
        return cls(**known)

    @property
    def batch_most_secs(self) -> float:
        """The most time a batch may take: as set, or derived from other settings."""
        if self.batch_max_secs is not None:
            return self.batch_max_secs
        return min(_TARGETS_IN_MOST * self.batch_target_secs, self.batch_timeout_secs / 2)

    @field_validator("user")
    @classmethod
    def _hide_secrets(cls, user: dict[str, Any]) -> dict[str, Any]:
        """Hide passwords among the user's settings."""
        made: dict[str, Any] = hidden(user)
        return made

    @model_validator(mode="after")
    def _check_batch_secs(self) -> "Config":
        most = self.batch_max_secs
        if most is not None and not self.batch_target_secs <= most < self.batch_timeout_secs:
            raise ValueError(
                f"batch_max_secs is {most:g}: choose at least batch_target_secs "
                f"({self.batch_target_secs:g}) and less than batch_timeout_secs "
                f"({self.batch_timeout_secs:g})"
            )
        return self

    def override(self, settings: Mapping[str, object]) -> "Config":
        """Return a copy with some fields replaced, checked like new ones."""
        return Config(**{**dict(self), **_by_name(settings)}) if settings else self


def setting_name(key: str) -> str:
    """Return the field of a key; Storm's keys are known, too.

    >>> setting_name("topology.tick.tuple.freq.secs")
    'tick_tuple_freq_secs'
    """
    names = {field.alias: name for name, field in Config.model_fields.items() if field.alias}
    return names.get(key, key)


def _by_name(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings by field names, with Storm's keys replaced.

    Raises:
        ConfigError: a setting is given under both names.
    """
    named: dict[str, object] = {}
    for key, value in settings.items():
        name = setting_name(key)
        if name in named:
            raise ConfigError(f"setting {name!r} is given twice, also by Storm's key: drop one")
        named[name] = value
    return named


def _explain(error: ValidationError) -> str:
    lines = []
    for fault in error.errors():
        key = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            lines.append(f"unknown setting {key!r}: {_nearest(key)}")
        elif not key:  # of several settings together
            lines.append(fault["msg"].removeprefix("Value error, "))
        else:
            value = hidden(fault["input"], key)
            lines.append(f"setting {key!r} has the value {value!r}: {fault['msg']}")
    return "\n".join(lines)


def _nearest(key: str) -> str:
    import difflib

    names = [*Config.model_fields, *(f.alias for f in Config.model_fields.values() if f.alias)]
    if key in _STORMS_OWN:
        return f"sparkstorm has no use for it: {_STORMS_OWN[key]}"
    close = difflib.get_close_matches(key, names, n=1, cutoff=0.75)
    if close:
        return f"did you mean {close[0]!r}?"
    return "see docs/configuration.md for all settings; your own go under user.NAME"
