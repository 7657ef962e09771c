"""What shell bolts promise, whatever their children do."""

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.errors import ComponentError, TopologyError
from sparkstorm.multilang import ShellBolt
from sparkstorm.testing import FeederSpout, LogSpout, wait_until

CHILDREN = Path(__file__).parent / "children"


def child(role: str, *arguments: str, outputs: Any = ("value",), **options: Any) -> ShellBolt:
    command = [sys.executable, "roles.py", role, *arguments]
    return ShellBolt(command, outputs=outputs, resources=CHILDREN, **options)


class WhoGotIt(ss.BasicBolt):
    """Tells which task got a word."""

    outputs = ("word", "task")

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup[0], self.context.task])


def through(bolt: ShellBolt, spout: Any, tasks: int = 1) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", spout)
    builder.set_bolt("shell", bolt, tasks).fields_grouping("feed", ["word"])
    return builder.create_topology()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def feed() -> FeederSpout:
    return FeederSpout(["word"])


def test_words_are_split_and_each_line_is_acked(run_topology: Any, feed: FeederSpout) -> None:
    with run_topology(through(child("split"), feed)) as play:
        for number, line in enumerate(["to be or", "not to be", "größer ✓"]):
            feed.feed([line], number)
        statistics = play.settle()
        assert sorted(feed.acked) == [0, 1, 2]
        assert statistics.failed == 0
        words = sorted(word for (word,) in play.emitted("shell"))
        assert words == sorted(["to", "be", "or", "not", "to", "be", "größer", "✓"])


def test_a_counting_child_lives_over_batches_and_counts_exactly(
    run_topology: Any, feed: FeederSpout
) -> None:
    """The same process, whichever worker runs the task; after the run it is gone."""
    bolt = child("count", outputs=("word", "n", "pid"))
    with run_topology(through(bolt, feed, 3)) as play:
        for turn in range(4):
            for number, word in enumerate("abcdefg"):
                feed.feed([word], (turn, number))
            play.settle()
        rows = play.emitted("shell")
        assert Counter((word, n) for word, n, _ in rows) == Counter(
            (word, n) for word in "abcdefg" for n in (1, 2, 3, 4)
        )
        assert all(len({pid for word, _, pid in rows if word == one}) == 1 for one in "abcdefg")
    pids = {pid for _, _, pid in rows}
    wait_until(lambda: not any(map(is_running, pids)))


def test_tuples_may_be_acked_in_a_later_batch(run_topology: Any, feed: FeederSpout) -> None:
    """Out of order, and with an emit that is anchored to tuples of several batches."""
    with run_topology(through(child("batch", "5"), feed)) as play:
        for number in range(7):
            feed.feed([f"w{number}"], number)
            play.settle()
        play.pass_time(lambda: len(feed.acked) == 5)
        assert sorted(feed.acked) == [0, 1, 2, 3, 4]
        assert play.emitted("shell") == [(["w0", "w1", "w2", "w3", "w4"],)]
        assert play.statistics().pending == 2


def test_an_ack_that_comes_when_nothing_else_does_is_heard(
    run_topology: Any, feed: FeederSpout
) -> None:
    """Two tasks wait, one each, until the other word comes: ticks run the batch."""
    with run_topology(through(child("upon", linger_secs=0.0), feed)) as play:
        feed.feed(["keep"], 1)
        play.settle()
        assert feed.acked == []
        feed.feed(["release"], 2)
        play.settle()
        play.pass_time(lambda: sorted(feed.acked) == [1, 2])
        assert ("late",) in play.emitted("shell")


def test_a_failed_tuple_fails_its_message_with_the_component(
    run_locally: Any, feed: FeederSpout
) -> None:
    with run_locally(through(child("upon"), feed)) as play:
        feed.feed(["fail"], 1)
        feed.feed(["fine"], 2)
        play.settle()
        assert feed.acked == [2]
        assert feed.failed == [1]
        assert feed.failures[0].component == "shell"
        assert "failed one" in play.texts("shell")


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("exit", "exit code 3: I give up"),
        ("garbage", "no message"),
        ("emit after ack", "after it had acked"),
        ("odd anchor", "'999', which is no tuple's id"),
    ],
)
def test_a_child_that_dies_fails_its_tuples_and_is_started_again(
    run_locally: Any, feed: FeederSpout, word: str, why: str
) -> None:
    """In place: the rest of the topology, and of the batch, goes on."""
    with run_locally(through(child("upon"), feed)) as play:
        feed.feed(["fine"], 1)
        play.settle()
        feed.feed(["keep"], 2)
        feed.feed([word], 3)
        play.settle()
        feed.feed(["fine again"], 4)
        play.settle()
        assert [one for one in feed.acked if one != 3] == [1, 4]
        reasons = dict(zip(feed.failed, [one.message for one in feed.failures], strict=True))
        assert why in reasons[2], reasons
        assert any(why in text for text in play.texts("shell"))


def test_a_child_that_hangs_is_killed_and_its_tuples_fail(
    run_locally: Any, feed: FeederSpout
) -> None:
    config = {"topology.subprocess.timeout.secs": 3}
    with run_locally(through(child("upon"), feed), config) as play:
        feed.feed(["hang"], 1)
        play.settle()
        assert "no sign of life for 3 s" in feed.failures[0].message
        feed.feed(["fine"], 2)
        play.settle()
        assert feed.acked == [2]


def test_what_pystorm_says_before_it_dies_is_understood(
    run_locally: Any, feed: FeederSpout
) -> None:
    """An error, a sync that nobody asked for, a fail; then exit code 1."""
    with run_locally(through(child("upon"), feed)) as play:
        feed.feed(["die as pystorm"], 1)
        feed.feed(["fine"], 2)
        play.settle()
        assert feed.failed[0] == 1
        assert "Python ValueError raised" in play.texts("shell")
        feed.feed(["fine"], 3)
        play.settle()
        assert 3 in feed.acked


def test_a_child_that_keeps_dying_does_not_hold_the_batch_up(
    run_locally: Any, feed: FeederSpout
) -> None:
    """After three in a row the batch's other tuples fail at once."""
    with run_locally(through(ShellBolt("false", outputs=["x"]), feed)) as play:
        for number in range(5):
            feed.feed(["word"], number)
        play.settle()
        assert len(feed.failed) == 5
        assert all("exit code 1" in failure.message for failure in feed.failures)


def test_killing_a_child_between_batches_fails_what_it_had_not_acked(
    run_locally: Any, feed: FeederSpout
) -> None:
    with run_locally(through(child("count", outputs=("word", "n", "pid")), feed)) as play:
        feed.feed(["a"], 1)
        play.settle()
        pid = play.emitted("shell")[0][2]
        os.kill(pid, 9)
        wait_until(lambda: not is_running(pid))
        feed.feed(["a"], 2)
        play.settle()
        assert feed.acked == [1, 2]
        assert [row[1] for row in play.emitted("shell")] == [1, 1]


def test_a_child_that_never_acks_times_out_and_leaves_nothing(
    run_locally: Any, feed: FeederSpout
) -> None:
    with run_locally(through(child("silent", linger_secs=0.0), feed)) as play:
        feed.feed(["a"], 1)
        play.settle()
        play.pass_time(lambda: bool(feed.failed))
        assert feed.failures[0].reason is ss.Reason.TIMEOUT
        feed.feed(["b"])
        play.settle()
        state = play.runner._jobs._worker._tasks
        (task,) = [one for one in state.values() if one._component == "shell"]
        assert len(task._instance.bolt._held) == 0


def test_a_print_is_an_error_that_quotes_it_and_does_no_harm(
    run_locally: Any, feed: FeederSpout
) -> None:
    with run_locally(through(child("upon"), feed)) as play:
        feed.feed(["print"], 1)
        play.settle()
        assert feed.acked == [1]
        (text,) = [text for text in play.texts("shell") if "hello from a print" in text]
        assert "print to standard error" in text


def test_logs_metrics_errors_and_stderr_show_where_python_bolts_show_theirs(
    run_locally: Any, feed: FeederSpout
) -> None:
    with run_locally(through(child("upon"), feed)) as play:
        feed.feed(["tell"], 1)
        statistics = play.settle()
        assert feed.acked == [1]
        levels = {line.text: line.level for line in play.lines if line.component == "shell"}
        assert levels["level 2"] == "info"
        assert levels["level 3"] == "warning"
        assert levels["level 4"] == "error"
        assert levels["an error of its own"] == "error"
        assert "a line of stderr" in levels
        (task,) = statistics.components["shell"].values()
        assert dict(task.user) == {"seen": 2.0, "sizes.small": 1.0}


def test_a_second_ack_is_told_and_changes_nothing(run_locally: Any, feed: FeederSpout) -> None:
    with run_locally(through(child("upon"), feed)) as play:
        feed.feed(["ack twice"], 1)
        play.settle()
        assert (feed.acked, feed.failed) == ([1], [])
        assert any("twice" in text for text in play.texts("shell"))


def test_an_emit_to_an_undeclared_stream_fails_its_anchor(
    run_locally: Any, feed: FeederSpout
) -> None:
    with run_locally(through(child("upon"), feed)) as play:
        feed.feed(["odd stream"], 1)
        feed.feed(["fine"], 2)
        play.settle()
        assert feed.acked == [2]
        assert "nobody's" in feed.failures[0].message


def test_a_child_that_waits_for_task_ids_gets_them(run_locally: Any, feed: FeederSpout) -> None:
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", feed)
    outputs = {"default": ["word"], "ids": ["tasks"]}
    builder.set_bolt("shell", child("ids", outputs=outputs)).shuffle_grouping("feed")
    builder.set_bolt("all", WhoGotIt(), 2).all_grouping("shell")
    builder.set_bolt("some", WhoGotIt(), 3).fields_grouping("shell", ["word"])
    builder.set_bolt("any", WhoGotIt(), 3).shuffle_grouping("shell")
    with run_locally(builder.create_topology()) as play:
        for number in range(200):
            feed.feed([f"w{number}"], number)
        play.settle()
        assert len(feed.acked) == 200
        told = Counter(task for (tasks,) in play.emitted("shell", "ids") for task in tasks)
        got = Counter(task for name in ("all", "some", "any") for _, task in play.emitted(name))
        assert told == got
        assert len(got) == 8


def test_many_tuples_are_in_flight_and_the_queue_is_bounded(
    run_locally: Any, feed: FeederSpout
) -> None:
    config = {"topology.shellbolt.max.pending": 7}
    with run_locally(through(child("split"), feed), config) as play:
        for number in range(500):
            feed.feed(["one word"], number)
        play.settle()
        assert len(feed.acked) == 500


def test_the_handshake_tells_all_that_storm_tells(run_topology: Any, feed: FeederSpout) -> None:
    """And the resources, the variables and the settings of one's own are there."""
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", feed)
    env = {"FOR_THE_CHILD": "yes", "PATH": "/behind"}
    builder.set_bolt("shell", child("facts", env=env), 2).fields_grouping("feed", ["word"])
    builder.set_bolt("end", child("split")).shuffle_grouping("shell")
    with run_topology(builder.create_topology(), {"user.mine": 7}) as play:
        feed.feed(["a"], 1)
        play.settle()
        facts = json.loads(play.emitted("shell")[0][0])
    assert facts.pop("files")[0] == "roles.py"
    context = facts.pop("context")
    facts.pop("name")
    assert facts == {"mine": 7, "pid file": True, "variable": "yes", "path": "/behind"}
    tasks = context.pop("task->component")
    assert tasks[str(context.pop("taskid"))] == "shell"
    assert set(tasks.values()) == {"__acker", "end", "feed", "shell"}
    assert context == {
        "componentid": "shell",
        "streams": ["default"],
        "stream->outputfields": {"default": ["value"]},
        "stream->target->grouping": {"default": {"end": {"type": "SHUFFLE"}}},
        "source->stream->grouping": {"feed": {"default": {"type": "FIELDS", "fields": ["word"]}}},
        "source->stream->fields": {"feed": {"default": ["word"]}},
    }


def test_ticks_reach_the_child_if_somebody_asked_for_them(
    run_locally: Any, feed: FeederSpout
) -> None:
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", feed)
    for name, settings in (("ticked", {"topology.tick.tuple.freq.secs": 1}), ("not", {})):
        bolt = builder.set_bolt(name, child("ticks")).shuffle_grouping("feed")
        for key, value in settings.items():
            bolt.add_configuration(key, value)
    with run_locally(builder.create_topology()) as play:
        play.clock.advance(5)
        feed.feed(["a"], 1)
        play.settle()
        assert sorted(play.emitted("ticked")) == [("__system __tick -1",), ("feed default 3",)]
        assert play.emitted("not") == [("feed default 3",)]


def test_a_missing_interpreter_is_one_clear_error(run_topology: Any, feed: FeederSpout) -> None:
    topology = through(ShellBolt("no-such-ruby split.rb", outputs=["word"]), feed)
    feed.feed(["a"], 1)
    why = r"'shell'.*no-such-ruby split\.rb.*on host"
    with run_topology(topology) as play, pytest.raises(ComponentError, match=why):
        play.settle()


def test_a_value_that_json_has_not_fails_its_tuple_alone(
    run_locally: Any, feed: FeederSpout
) -> None:
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", feed)
    builder.set_bolt("shell", child("split")).shuffle_grouping("feed")
    with run_locally(builder.create_topology()) as play:
        feed.feed([b"bytes"], 1)
        feed.feed(["text"], 2)
        play.settle()
        assert feed.acked == [2]
        assert "JSON cannot hold" in feed.failures[0].message


def test_a_batch_that_is_rolled_back_loses_no_late_emit(
    run_locally: Any, feed: FeederSpout
) -> None:
    """A child emits for a held tuple and acks it, once; the run that hears it does not count."""
    with run_locally(through(child("upon", linger_secs=0.0), feed)) as play:
        feed.feed(["keep"], 1)
        play.settle()
        feed.feed(["release"], 2)
        runner = play.runner
        runner.ask_spouts()
        assert runner.plan_batch()
        runner.run_job()
        runner.roll_back()
        assert runner.finish(runner.run_job())
        runner.apply()
        runner.commit()
        play.settle()
        assert sorted(feed.acked) == [1, 2]
        assert play.emitted("shell") == [("late",)]


def test_resources_that_are_not_there_are_refused_at_once() -> None:
    with pytest.raises(TopologyError, match="no folder here"):
        ShellBolt("x", outputs=["word"], resources="/no/such/folder")


def test_an_ack_after_an_emit_that_did_not_fit_is_no_second_one(
    run_locally: Any, feed: FeederSpout
) -> None:
    """The child knows nothing of the failure: one error is told, the emit's."""
    with run_locally(through(child("upon"), feed)) as play:
        feed.feed(["odd stream, then ack"], 1)
        play.settle()
        assert feed.failed == [1]
        told = play.texts("shell")
        assert any("it declares default" in text for text in told)
        assert not any("twice" in text for text in told)


def test_a_child_that_never_answers_is_not_started_again_for_nothing(
    run_locally: Any, feed: FeederSpout
) -> None:
    """Only tuples are worth another try; ticks of ours are not."""
    config = {"topology.subprocess.timeout.secs": 1}
    with run_locally(through(child("mute"), feed), config) as play:
        feed.feed(["a"], 1)
        play.settle()
        assert feed.failed == [1]
        told = len(play.texts("shell"))
        play.clock.advance(5.0)
        play.settle()
        assert len(play.texts("shell")) == told
        assert not any("0 tuples" in text for text in play.texts("shell"))


@pytest.mark.parametrize(
    ("command", "env", "why"),
    [
        ("python3 'it.py", {}, "cannot be split: No closing quotation"),
        (["python3", 3], {}, "the word 3, which is no text"),
        ("python3", {"N": 1}, "env takes texts: 'N' has the value 1"),
    ],
)
def test_a_command_that_cannot_be_started_anywhere_is_refused_at_once(
    command: Any, env: Any, why: str
) -> None:
    with pytest.raises(TopologyError, match=why):
        ShellBolt(command, outputs=["value"], env=env)


def test_an_empty_command_and_an_unknown_serializer_are_refused_at_once() -> None:
    with pytest.raises(TopologyError, match="needs a command"):
        ShellBolt("", outputs=["word"])
    with pytest.raises(TopologyError, match="there are json, msgpack"):
        ShellBolt("x", outputs=["word"], serializer="protobuf")


def test_a_subclass_may_say_what_it_runs_and_declares(run_locally: Any, feed: FeederSpout) -> None:
    """As Storm's users write it; settings that JSON cannot hold stay here."""

    class Split(ShellBolt):
        outputs = "word string"

        def __init__(self) -> None:
            super().__init__([sys.executable, "roles.py", "split"], resources=CHILDREN)

    with run_locally(through(Split(), feed), {"user.odd": object()}) as play:
        feed.feed(["to be"], 1)
        play.settle()
        assert play.emitted("shell") == [("to",), ("be",)]


def test_exactly_once_is_refused_since_a_child_remembers(run_locally: Any) -> None:
    topology = through(child("count"), LogSpout([["a"]], outputs=["word"]))
    with pytest.raises(ss.ConfigError, match=r"'shell' keeps a process.*not rolled back") as caught:
        run_locally(topology, {"processing.guarantee": "exactly-once"}).__enter__()
    assert "tick" not in str(caught.value)


def test_a_held_tuple_fails_with_the_reason_when_its_child_dies(
    run_locally: Any, feed: FeederSpout
) -> None:
    """In a later batch than the one that sent it, or between two."""
    with run_locally(through(child("upon", linger_secs=0.0), feed)) as play:
        feed.feed(["keep"], 1)
        play.settle()
        feed.feed(["exit"], 2)
        play.settle()
        assert sorted(feed.failed) == [1, 2]
        assert all("exit code 3: I give up" in failure.message for failure in feed.failures)
