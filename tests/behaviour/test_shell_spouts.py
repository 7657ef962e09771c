"""What shell spouts promise, whatever their children do."""

import sys
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.multilang import ShellSpout

CHILDREN = Path(__file__).parent / "children"


def child(role: str, *arguments: str, outputs: Any, **options: Any) -> ShellSpout:
    command = [sys.executable, "roles.py", role, *arguments]
    return ShellSpout(command, outputs=outputs, resources=CHILDREN, **options)


class FailOnce(ss.Bolt):
    """Fails the first attempt of each third number."""

    outputs = ("n",)

    def execute(self, tup: ss.Tuple) -> None:
        self.seen: set[int] = getattr(self, "seen", set())
        number = tup[0]
        if number % 3 == 0 and number not in self.seen:
            self.seen.add(number)
            self.collector.fail(tup)
        else:
            self.collector.emit([number], anchors=tup)
            self.collector.ack(tup)

    transient = ("seen",)


def through(spout: ShellSpout) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("end", FailOnce()).shuffle_grouping("numbers")
    return builder.create_topology()


def test_each_message_is_emitted_until_it_is_acked(run_topology: Any) -> None:
    """Ids come back as the numbers that they were, and the child that has no more may end."""
    spout = child("numbers", "10", outputs=("n", "told"), ends=True)
    with run_topology(through(spout)) as play:
        statistics = play.drain()
        assert statistics.acked == 10
        assert statistics.failed >= 4  # more, where other workers have not seen a number
        assert sorted(n for (n,) in play.emitted("end")) == list(range(10))


def test_without_ackers_each_message_is_acked_as_soon_as_it_is_emitted(run_locally: Any) -> None:
    spout = child("numbers", "4", outputs=("n", "told"), ends=True)
    with run_locally(through(spout), {"topology.acker.executors": 0}) as play:
        play.settle()
        assert sorted(n for n, _ in play.emitted("numbers")) == [0, 1, 2, 3]


@pytest.mark.parametrize("lifecycle", [True, False])
def test_activate_and_deactivate_are_told_unless_that_is_turned_off(
    run_locally: Any, lifecycle: bool
) -> None:
    spout = child("numbers", "1", outputs=("n", "told"), lifecycle=lifecycle)
    with run_locally(through(spout)) as play:
        play.set_active(False)
        play.set_active(True)
        play.settle()
        wanted = ["deactivate", "activate"] if lifecycle else []
        assert all(told == wanted for _, told in play.emitted("numbers"))
        assert play.statistics().acked == 1


def test_a_child_that_dies_is_started_again_and_goes_on(run_locally: Any, tmp_path: Path) -> None:
    """Its source knows where it was; messages of dead children go their way."""
    place = tmp_path / "place"
    place.write_text("0")
    spout = child("crashing", str(place), outputs=("n",))
    with run_locally(through(spout)) as play:

        def is_done() -> bool:
            return len(play.emitted("numbers")) == 5

        play.pass_time(is_done)
        assert sorted(n for (n,) in play.emitted("numbers")) == [0, 1, 2, 3, 4]
        assert any("exit code 1" in text for text in play.texts("numbers"))


def test_a_command_that_spouts_do_not_have_ends_the_child(run_locally: Any) -> None:
    with run_locally(through(child("dancing", outputs=("n",)))) as play:
        play.settle()
        assert any("unknown command 'dance'" in text for text in play.texts("numbers"))


def test_a_missing_interpreter_is_one_clear_error(run_locally: Any) -> None:
    topology = through(ShellSpout("no-such-perl spout.pl", outputs=["n", "told"]))
    with (
        pytest.raises(ss.EnvironmentFault, match=r"'numbers'.*no-such-perl spout\.pl.*on host"),
        run_locally(topology),
    ):
        pass
