"""The warm-up of Spark's Python workers."""

import threading
from typing import Any

import pytest

from sparkstorm.spark.driver.warm_up import warm_workers

pytestmark = pytest.mark.spark


def test_the_rows_stay_in_java(spark: Any) -> None:
    """Were they read by Arrow on the warm-up's thread, an exit meanwhile would be an abort."""
    called: set[str] = set()

    def note(frame: Any, event: str, given: Any) -> None:
        called.add(frame.f_globals.get("__name__", ""))

    before = set(threading.enumerate())
    threading.setprofile(note)
    try:
        warm_workers(spark)
    finally:
        threading.setprofile(None)
    for thread in set(threading.enumerate()) - before:
        if thread.name == "sparkstorm-warm-up":
            thread.join()
    assert any(name.startswith("py4j") for name in called)
    assert "pyarrow.ipc" not in called
