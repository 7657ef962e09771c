"""The schemas of the tables."""

__all__ = ["SCHEMAS"]

_PLACE = "partition string, offset bigint"

SCHEMAS = {
    "messages": (
        "spout string, task int, state string, attempt int, since timestamp, batch bigint, "
        "reason string, component string, why string, source string, position bigint, "
        f"{_PLACE}"
    ),
    "attempts": (
        "spout string, task int, attempt int, outcome string, reason string, component string, "
        "component_task int, why string, traceback string, letter string, position bigint, "
        f"{_PLACE}"
    ),
    "dead_letters": (
        "id string, topology string, run string, spout string, task int, stream string, "
        "payload string, msg_id string, source string, reason string, component string, "
        "component_task int, why string, traceback string, attempts int, replays int, "
        f"first_time timestamp, last_time timestamp, note string, {_PLACE}"
    ),
    "partitions": (
        "spout string, partition string, committed bigint, planned bigint, pending bigint, "
        "waiting bigint, dead_letters bigint, oldest bigint, held_by string, held_why string"
    ),
    "state": "component string, task int, state string, key string, value string",
}
"""The columns of each table, as Spark's DDL. ``payload``, ``msg_id``, ``source``, ``key`` and
``value`` are JSON. In ``messages`` and ``attempts`` the columns from ``position`` on stand last,
since one answer of the driver may stand for many rows."""
