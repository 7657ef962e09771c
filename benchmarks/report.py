"""Rows with a target and a verdict, as a table and as a file."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.table import Table

from benchmarks.measure import Spread
from sparkstorm._version import is_compiled

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The bound that a figure has to reach: at least, or at most."""

    bound: float
    at_most: bool = False

    def __str__(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.bound:g}"

    def is_met(self, value: float) -> bool:
        """Whether the figure is good enough."""
        return value <= self.bound if self.at_most else value >= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the report; a row without a target only informs."""

    setting: str
    what: str
    figure: Spread
    counts_ok: bool
    target: Target | None = None
    digits: int = 2

    @property
    def is_ok(self) -> bool:
        """Whether the counts were right and the target is met."""
        return self.counts_ok and (self.target is None or self.target.is_met(self.figure.median))

    @property
    def verdict(self) -> str:
        """The verdict in a word."""
        if not self.counts_ok:
            return "WRONG COUNTS"
        if self.target is None:
            return ""
        return "pass" if self.is_ok else "FAIL"


def table(title: str, rows: Sequence[Row]) -> Table:
    """Return the rows as a table."""
    laid_out = Table("setting", "what", title=title, title_justify="left")
    for heading in ("median", "low", "high", "target"):
        laid_out.add_column(heading, justify="right", no_wrap=True)
    laid_out.add_column("counts")
    laid_out.add_column("verdict", no_wrap=True)
    for row in rows:
        figure = [row.figure.median, row.figure.low, row.figure.high]
        laid_out.add_row(
            row.setting,
            row.what,
            *(f"{value:,.{row.digits}f}" for value in figure),
            str(row.target or ""),
            "equal" if row.counts_ok else "WRONG",
            row.verdict,
            style=None if row.is_ok else "bold red",
        )
    return laid_out


def dump(runs: Sequence[Mapping[str, object]], rows: Sequence[Row]) -> Path:
    """Write all raw figures to a new file and return its path."""
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    path = RESULTS / f"word_count-{now:%Y%m%dT%H%M%SZ}.json"
    summary = [
        {
            "setting": row.setting,
            "what": row.what,
            "median": row.figure.median,
            "low": row.figure.low,
            "high": row.figure.high,
            "target": str(row.target or ""),
            "counts_ok": row.counts_ok,
            "verdict": row.verdict,
        }
        for row in rows
    ]
    content = {"at": now.isoformat(), "machine": _machine(), "rows": summary, "runs": list(runs)}
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def _machine() -> dict[str, object]:
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "compiled": is_compiled(),
        "packages": {name: _version(name) for name in ("pyspark", "bytewax", "pyarrow", "numpy")},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
