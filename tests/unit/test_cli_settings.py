"""The settings of ``sparkstorm run``: given settings, a trial's limits, Spark's options."""

import sys
import zipfile
from pathlib import Path

import pytest

from sparkstorm.cli.loading import load, offer_python_files
from sparkstorm.cli.settings import python_files, run_settings, spark_settings
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.sources.retry import RetryPolicy
from sparkstorm.verdicts import Failure, Reason


def secs_to_the_letter(config: Config) -> float:
    """Return how long a message that always fails waits until it is given up."""
    policy, failure = RetryPolicy.of(config), Failure(reason=Reason.ERROR)
    waited, attempt = 0.0, 1
    while (wait := policy.wait(failure, attempt=attempt, key=attempt)) is not None:
        waited, attempt = waited + wait, attempt + 1
    return waited


def test_a_trial_shows_its_first_dead_letter_within_seconds() -> None:
    """Without a checkpoint nobody waits half an hour for a mistake."""
    assert secs_to_the_letter(run_settings([], checkpoint=None)) < 5


def test_a_run_with_a_checkpoint_bears_an_outage() -> None:
    """Its messages are worth the wait: the limits are those of ``submit``."""
    assert run_settings([], checkpoint="/data/words") == Config()


@pytest.mark.parametrize("key", ["max_retries", "topology.max.retries"])
@pytest.mark.parametrize("value", ["16", "0", "none"])
def test_a_given_limit_counts(key: str, value: str) -> None:
    """Also if it is the default of ``submit``."""
    config = run_settings([f"{key}={value}"], checkpoint=None)
    assert config.max_retries == (None if value == "none" else int(value))


def test_other_settings_stay_as_they_are_given() -> None:
    """The limit comes beside them."""
    config = run_settings(["user.limit=3", "acker_executors=2"], checkpoint=None)
    assert (config.user, config.acker_executors) == ({"limit": "3"}, 2)
    assert config.max_retries == 3


@pytest.mark.parametrize("size", ["banana", "2", "2gb", "1.5g", "-1g", ""])
def test_a_driver_memory_that_java_would_refuse_is_refused_at_once(size: str) -> None:
    """Java would read 2 as two bytes, and 2gb not at all."""
    with pytest.raises(ConfigError, match=r"--driver-memory .* is no size.*for example 2g"):
        spark_settings([], driver_memory=size)


def test_packages_have_a_group_a_name_and_a_version() -> None:
    """Spark would start Ivy first, and then say so in Java."""
    good = "org.apache.spark:spark-avro_2.13:4.0.0, a.b/c:1"
    assert spark_settings([], packages=good) == {"spark.jars.packages": good}
    with pytest.raises(ConfigError, match="'a:b' is no package: write GROUP:NAME:VERSION"):
        spark_settings([], packages="a.b:c:1,a:b")


def test_the_master_is_not_given_twice() -> None:
    """Spark would start elsewhere than the screen says."""
    with pytest.raises(ConfigError, match="write --master"):
        spark_settings(["spark.master=yarn"])


def test_python_files_that_workers_could_not_import_are_refused(tmp_path: Path) -> None:
    """A folder, a file of another kind, and no file at all; a remote file is left to Spark."""
    (tmp_path / "notes.txt").write_text("")
    wrong = {
        tmp_path: r"is no .py, .zip or .egg file.*a zip",
        tmp_path / "notes.txt": "is no .py, .zip or .egg file",
        tmp_path / "none.py": "there is no such file",
    }
    for path, words in wrong.items():
        with pytest.raises(ConfigError, match=words):
            spark_settings([], py_files=f"s3a://shop/lib.zip,{path}")
        with pytest.raises(ConfigError, match=words):
            spark_settings([f"spark.submit.pyFiles={path}"])


def test_a_topology_imports_the_modules_of_its_python_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver has them as well as the workers: bolts are mostly imported at a file's top."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", "")
    lib = tmp_path / "lib"
    lib.mkdir()
    (lib / "pyfiles_single.py").write_text("ROWS = ['a']\n")
    with zipfile.ZipFile(lib / "more.zip", "w") as archive:
        archive.writestr("pyfiles_zipped.py", "MORE = ['b']\n")
    target = tmp_path / "topo.py"
    target.write_text(
        "import sparkstorm as ss\n"
        "from pyfiles_single import ROWS\n"
        "from pyfiles_zipped import MORE\n"
        "topology = ss.TopologyBuilder()\n"
        "topology.set_spout('rows', ss.spouts.IteratorSpout(ROWS + MORE, 'row string'))\n"
    )
    files = f"{lib / 'pyfiles_single.py'},file://{lib / 'more.zip'}"
    offer_python_files(python_files(spark_settings([], py_files=files)))
    assert [spout.id for spout in load(str(target)).topology.spouts] == ["rows"]
