"""One line out of Spark's many, and whose fault it is."""

import pytest

from sparkstorm.spark.driver.failures.causes import (
    cause_of,
    is_death_of_worker,
    is_fault_of_state_store,
    lack_of_worker,
)

# --- what Spark 4.3 says, less the frames ---------------------------------------------------------

PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "bolts.py", line 7, in execute
ValueError: not a number: 'seven'
"""

DEATH = """An error occurred while calling o27.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 4 times
Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)
Caused by: java.io.EOFException
"""

STATE = """An error occurred while calling o277.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error \
occurred during loading state.  SQLSTATE: 58030
Caused by: org.apache.spark.sql.execution.streaming.state.StateStoreFailedToGetChangelogWriter: \
[CANNOT_LOAD_STATE_STORE.FAILED_TO_GET_CHANGELOG_WRITER] An error occurred during loading state.
Caused by: org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/c
\t... 3 more
"""

COMMIT = """An error occurred while calling o332.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
Caused by: org.apache.spark.SparkException: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing.
"""

LACK = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "runtime.py", line 154, in _unpickled
ModuleNotFoundError: No module named 'acme'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
sparkstorm.errors.EnvironmentFault: a Python worker on node-7 cannot load the topology: ...
"""

CANCELLED = "org.apache.spark.SparkException: Job 7 cancelled as part of a group"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (PYTHON, "ValueError: not a number: 'seven'"),
        (DEATH, "Python worker exited unexpectedly"),
        (
            STATE,
            "ParentNotDirectoryException: Parent path is not a directory: file:/c "
            "[CANNOT_LOAD_STATE_STORE.FAILED_TO_GET_CHANGELOG_WRITER]",
        ),
        (COMMIT, "SparkException: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing."),
        (CANCELLED, "Job 7 cancelled as part of a group"),
        ("something else\n  at somewhere", "something else"),
        ("", "RuntimeError"),
    ],
)
def test_the_cause(text: str, cause: str) -> None:
    """It is what a person would look for."""
    assert cause_of(RuntimeError(text)) == cause


@pytest.mark.parametrize(
    ("text", "died", "state"),
    [
        (PYTHON, False, False),
        (DEATH, True, False),
        (STATE, False, True),
        (COMMIT, False, True),
        (STATE + DEATH, True, False),  # a task whose worker died cannot commit, either
        (CANCELLED, False, False),
    ],
)
def test_whose_fault_it_is(text: str, died: bool, state: bool) -> None:
    """A death may be a message's doing, a state store that is away is nobody's."""
    error = RuntimeError(text)
    assert (is_death_of_worker(error), is_fault_of_state_store(error)) == (died, state)


def test_what_a_worker_lacks_is_told_from_errors_of_bolts() -> None:
    lack = lack_of_worker(RuntimeError(LACK))
    assert lack == "a Python worker on node-7 cannot load the topology: ..."
    for text in (PYTHON, DEATH, STATE, CANCELLED, ""):
        assert lack_of_worker(RuntimeError(text)) is None
