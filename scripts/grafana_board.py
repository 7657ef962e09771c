"""Write ``deploy/grafana/sparkstorm.json``: a board for the metrics of ``sparkstorm ui``.

python scripts/grafana_board.py
"""

import json
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parents[1] / "deploy" / "grafana" / "sparkstorm.json"

_HERE = 'topology=~"$topology"'
_RATE = "[$__rate_interval]"

Panel = tuple[str, str, dict[str, str]]
"""A title, a unit, and queries by their legends."""

PANELS: list[Panel] = [
    (
        "Messages",
        "ops",
        {
            "acked": f"rate(sparkstorm_messages_acked_total{{{_HERE}}}{_RATE})",
            "failed {{reason}}": f"rate(sparkstorm_attempts_failed_total{{{_HERE}}}{_RATE})",
            "given up": f"rate(sparkstorm_messages_given_up_total{{{_HERE}}}{_RATE})",
        },
    ),
    (
        "Unfinished messages",
        "short",
        {
            "pending": f"sparkstorm_messages_pending{{{_HERE}}}",
            "waiting": f"sparkstorm_messages_waiting{{{_HERE}}}",
        },
    ),
    (
        "The oldest unfinished message",
        "s",
        {"age": f"sparkstorm_oldest_message_age_seconds{{{_HERE}}}"},
    ),
    (
        "Dead letters",
        "short",
        {"letters": f"sparkstorm_dead_letters_total{{{_HERE}}}"},
    ),
    (
        "From plan to ack",
        "s",
        {
            f"{share}": f"histogram_quantile({share}, sum by (le) "
            f"(rate(sparkstorm_complete_seconds_bucket{{{_HERE}}}{_RATE})))"
            for share in (0.5, 0.9, 0.99)
        },
    ),
    (
        "Capacity",
        "percentunit",
        {"{{component}}": f"sparkstorm_capacity{{{_HERE}}}"},
    ),
    (
        "Executed tuples",
        "ops",
        {
            "{{component}}": f"sum by (component) "
            f"(rate(sparkstorm_tuples_executed_total{{{_HERE}}}{_RATE}))"
        },
    ),
    (
        "Time inside of execute, 99 %",
        "s",
        {
            "{{component}}": f"histogram_quantile(0.99, sum by (component, le) "
            f"(rate(sparkstorm_execute_seconds_bucket{{{_HERE}}}{_RATE})))"
        },
    ),
    (
        "Batches",
        "s",
        {
            "last": f"sparkstorm_batch_seconds{{{_HERE}}}",
            "target": f"sparkstorm_batch_target_seconds{{{_HERE}}}",
            "running": f"sparkstorm_batch_running_seconds{{{_HERE}}}",
        },
    ),
    (
        "Lag",
        "short",
        {"{{spout}} {{partition}}": f"sparkstorm_partition_lag{{{_HERE}}}"},
    ),
    (
        "Time behind",
        "s",
        {"{{spout}} {{partition}}": f"sparkstorm_partition_lag_seconds{{{_HERE}}}"},
    ),
    (
        "Since the last commit",
        "s",
        {
            "commit": f"sparkstorm_since_commit_seconds{{{_HERE}}}",
            "poll": f"sparkstorm_since_poll_seconds{{{_HERE}}}",
        },
    ),
]


def board() -> dict[str, Any]:
    """Return the board: two panels a row."""
    return {
        "title": "sparkstorm",
        "uid": "sparkstorm",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source(), _topology()]},
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "source", "type": "datasource", "query": "prometheus"}


def _topology() -> dict[str, Any]:
    return {
        "name": "topology",
        "label": "topology",
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "query": "label_values(sparkstorm_up, topology)",
        "refresh": 2,
        "includeAll": True,
        "multi": True,
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    title, unit, queries = panel
    return {
        "id": number + 1,
        "title": title,
        "type": "timeseries",
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "gridPos": {"x": 12 * (number % 2), "y": 8 * (number // 2), "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "expr": query, "legendFormat": legend}
            for place, (legend, query) in enumerate(queries.items())
        ],
    }


def main() -> None:
    """Write the board."""
    PLACE.write_text(json.dumps(board(), indent=2) + "\n")
    print(f"wrote {PLACE}")


if __name__ == "__main__":
    main()
