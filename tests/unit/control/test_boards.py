"""The Grafana board and the alert rules name metrics that there are."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from scripts.grafana_board import board

from sparkstorm.control.prometheus import _FAMILIES

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())

KNOWN = {
    f"{name}{suffix}"
    for name, (kind, _) in _FAMILIES.items()
    for suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
}


def named(text: str) -> set[str]:
    return set(re.findall(r"\bsparkstorm_\w+", text))


def rules() -> Iterator[dict[str, Any]]:
    for group in RULES["groups"]:
        yield from group["rules"]


def test_the_board_is_up_to_date() -> None:
    """Run ``python scripts/grafana_board.py`` if it is not."""
    assert json.loads((DEPLOY / "grafana" / "sparkstorm.json").read_text()) == board()


def test_the_board_asks_for_metrics_that_there_are() -> None:
    asked = named(json.dumps(board()))
    assert len(asked) > 15
    assert asked <= KNOWN


def test_alerts_ask_for_metrics_that_there_are() -> None:
    assert named(" ".join(rule["expr"] for rule in rules())) <= KNOWN
    assert len({rule["alert"] for rule in rules()}) == len(list(rules())) == 7


def test_alerts_say_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"].endswith(".")
