"""The codec bears any bytes: minutes of fuzzing, guided by coverage. Quick: `unit/multilang`."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SECS = 180


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="there is no atheris for this Python"
)
def test_any_bytes_are_messages_or_a_protocol_error_however_they_are_cut(tmp_path: Path) -> None:
    fuzzer = [sys.executable, "-m", "tests.fuzz.codec", f"-max_total_time={SECS}"]
    ended = subprocess.run(
        [*fuzzer, f"-artifact_prefix={tmp_path}/"],
        capture_output=True,
        check=False,
        cwd=Path(__file__).parents[2],
        text=True,
        timeout=SECS * 4,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    assert "Done" in ended.stderr
