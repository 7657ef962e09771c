"""Topologies of Storm's Flux: what is read, and what each mistake says."""

from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.flux import load_flux
from sparkstorm.multilang import ShellBolt, ShellSpout
from sparkstorm.testing import LocalRunner, ManualClock, complete_topology
from sparkstorm.topology.grouping import describe

MODULE = """
import sparkstorm as ss

class Numbers(ss.Spout):
    outputs = "n long, m long"
    def __init__(self, limit, step=1):
        self.limit, self.step = limit, step
    def next_tuple(self):
        pass

class Take(ss.BasicBolt):
    outputs = {"default": "n long", "aside": ss.Stream("n long", direct=True)}
    def __init__(self, *parts):
        self.parts, self.word = parts, None
    def withWord(self, word):
        self.word = word
    def execute(self, tup, collector):
        pass

class Ours(ss.CustomGrouping):
    def choose_tasks(self, values, tasks, sequence):
        return tasks[:1]

class Raises(ss.BasicBolt):
    def __init__(self):
        raise ValueError("no luck")
    def execute(self, tup, collector):
        pass
"""

SPOUT = """
spouts:
  - {id: numbers, className: "parts:Numbers", constructorArgs: {limit: 3}}
"""


@pytest.fixture(autouse=True)
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module beside the documents."""
    (tmp_path / "parts.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("import nowhere")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "parts", raising=False)


def load(folder: Path, text: str, **properties: str) -> Any:
    path = folder / "topology.yaml"
    path.write_text(text)
    return load_flux(path, properties)


def test_a_whole_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments, references, properties, methods, settings and every grouping."""
    monkeypatch.setenv("STEP", "5")
    found = load(
        tmp_path,
        """
name: "whole-${where}"
config: {topology.max.spout.pending: 7, topology.workers: 3}
components:
  - {id: a, className: str, constructorArgs: [x]}
  - {id: b, className: str, constructorArgs: [y]}
spouts:
  - id: numbers
    className: parts.Numbers
    constructorArgs: [3, ${ENV-STEP}]
    parallelism: 2
    config: {topology.max.spout.pending: 5}
bolts:
  - id: take
    className: parts:Take
    parallelism: 2
    numTasks: 3
    constructorArgs: [{ref: a}, {reflist: [a, b]}, {className: list, constructorArgs: [[1, 2]]}]
    properties: [{name: kind, value: plain}, {name: other, ref: b}]
    configMethods: [{name: withWord, args: [{ref: a}]}]
  - {id: last, className: "parts:Take"}
streams:
  - {from: numbers, to: take, grouping: {type: FIELDS, args: [n]}}
  - {from: take, to: last, grouping: {type: DIRECT, streamId: aside}}
  - {from: take, to: last, grouping: {type: CUSTOM, customClass: {className: "parts:Ours"}}}
  - {from: numbers, to: last, grouping: {type: partial_key, args: [m]}}
""",
        where="here",
    )
    assert (found.name, found.ignored) == ("whole-here", ("topology.workers",))
    assert found.settings == {"topology.max.spout.pending": 7}
    parts = found.topology.components
    assert (parts["numbers"].component.limit, parts["numbers"].component.step) == (3, 5)
    assert parts["numbers"].parallelism == 2
    assert parts["numbers"].settings == {"max_spout_pending": 5}
    take = parts["take"].component
    assert take.parts == ("x", ["x", "y"], [1, 2])
    assert (take.kind, take.other, take.word, parts["take"].parallelism) == ("plain", "y", "x", 3)
    read = [describe(edge.grouping) for edge in parts["last"].subscriptions]
    assert read == ["direct", "custom(Ours)", "partial_key(m)"]


def test_shell_components(tmp_path: Path) -> None:
    """By the wrappers that Flux brings along."""
    found = load(
        tmp_path,
        """
spouts:
  - id: sentences
    className: org.apache.storm.flux.wrappers.spouts.FluxShellSpout
    constructorArgs: [[node, sentences.js], [sentence]]
bolts:
  - id: split
    className: org.apache.storm.flux.wrappers.bolts.FluxShellBolt
    constructorArgs: [[python3, split.py]]
    configMethods:
      - {name: setDefaultStream, args: [[word]]}
      - {name: setNamedStream, args: [odd, [text, why]]}
  - {id: log, className: org.apache.storm.flux.wrappers.bolts.LogInfoBolt}
streams:
  - {from: sentences, to: split, grouping: {type: SHUFFLE}}
  - {from: split, to: log, grouping: {type: ALL, streamId: odd}}
""",
    )
    parts = found.topology.components
    assert isinstance(parts["sentences"].component, ShellSpout)
    assert isinstance(parts["split"].component, ShellBolt)
    assert {name: one.names for name, one in parts["split"].streams.items()} == {
        "default": ("word",),
        "odd": ("text", "why"),
    }


def test_includes(tmp_path: Path) -> None:
    """What the document itself has comes first, unless the include overrides."""
    (tmp_path / "more.yaml").write_text(
        SPOUT.replace("3", "9") + "config: {topology.acker.executors: 2}\n"
    )
    text = "includes: [{file: more.yaml, override: %s}]\n" + SPOUT
    assert load(tmp_path, text % "false").topology.components["numbers"].component.limit == 3
    found = load(tmp_path, text % "true")
    assert found.topology.components["numbers"].component.limit == 9
    assert found.settings == {"topology.acker.executors": 2}


BOLT = "bolts: [{id: take, className: 'parts:Take'}]\n"

MISTAKES = {
    "no YAML": ("name: [", "topology.yaml' is no YAML"),
    "no mapping": ("- a", "holds no topology: begin with name, spouts and bolts"),
    "an unknown key": ("bolt: []", "line 1: unknown keys bolt; known: name, config"),
    "a topology source": ("topologySource: {}", "'topologySource' is not supported: name a Python"),
    "a class of Java's": (
        "\nspouts:\n  - {id: a, className: org.x.Spout}\nbolts: [{id: b, className: com.y.Bolt}]",
        "no class here has the name of com.y.Bolt (",
    ),
    "no class name": ("\nspouts:\n  - {id: a}", "line 3: 'className' is missing"),
    "no id": ("spouts: [{className: 'parts:Numbers', constructorArgs: [3]}]", "'id' is missing"),
    "an unknown reference": (
        "\nspouts:\n- id: a\n  className: parts:Numbers\n  constructorArgs: [{ref: nobody}]",
        "line 5: there is no component 'nobody' before it; there are: none",
    ),
    "wrong arguments": (
        "\nspouts:\n  - {id: a, className: 'parts:Numbers'}",
        "line 3: parts:Numbers: TypeError: Numbers.__init__() missing 1 required",
    ),
    "a class that raises": (
        SPOUT + "bolts: [{id: a, className: 'parts:Raises'}]",
        "parts:Raises: ValueError: no luck",
    ),
    "no such method": (
        SPOUT + "bolts: [{id: a, className: 'parts:Take', configMethods: [{name: x}]}]",
        "parts:Take has no method 'x'",
    ),
    "a reader that is not there": (
        SPOUT + BOLT + "streams: [{from: numbers, to: x, grouping: {type: ALL}}]",
        "there is no bolt 'x'; there are: take",
    ),
    "no grouping": (SPOUT + BOLT + "streams: [{from: numbers, to: take}]", "needs a grouping"),
    "an unknown grouping": (
        SPOUT + BOLT + "streams: [{from: numbers, to: take, grouping: {type: ODD}}]",
        "the grouping ODD is none of ALL, DIRECT, SHUFFLE",
    ),
    "a custom grouping without class": (
        SPOUT + BOLT + "streams: [{from: numbers, to: take, grouping: {type: CUSTOM}}]",
        "a CUSTOM grouping needs customClass",
    ),
    "a source that is not there": (
        SPOUT + BOLT + "streams: [{from: x, to: take, grouping: {type: ALL}}]",
        "bolt 'take' subscribes to 'x', which does not exist",
    ),
    "a property without value": (
        "name: a\nconfig: {a: '${b}'}",
        "line 2: ${b} has no value: give the property behind --, as b=VALUE",
    ),
    "an unset variable": ("name: ${ENV-NO_SUCH}", "set the environment variable 'NO_SUCH'"),
    "an include that is missing": (
        "includes: [{file: nowhere.yaml}]",
        "nowhere.yaml': No such file",
    ),
    "a text for a list": ("spouts: numbers", "'spouts' is a list of mappings, not 'numbers'"),
    "a text for a number": (
        SPOUT.replace("{id", "{parallelism: two, id"),
        "parallelism is a number, not 'two'",
    ),
    "a misspelt key of a bolt": (
        SPOUT + "bolts: [{id: take, className: 'parts:Take', paralelism: 3}]",
        "unknown keys paralelism; known: id, name, className",
    ),
    "a misspelt key of a stream": (
        SPOUT + BOLT + "streams: [{from: numbers, too: take}]",
        "unknown keys too; known: id, name, from, to, grouping",
    ),
    "a misspelt key of a grouping": (
        SPOUT + BOLT + "streams: [{from: numbers, to: take, grouping: {type: ALL, stream: x}}]",
        "unknown keys stream; known: type, args, streamId",
    ),
    "a text for a list of arguments": (
        "spouts: [{id: a, className: 'parts:Numbers', constructorArgs: abc}]",
        "constructorArgs is a list or a mapping: write [abc]",
    ),
    "a module that imports what is missing": (
        "spouts: [{id: a, className: 'broken:Numbers'}]",
        "'broken:Numbers' could not be loaded: ModuleNotFoundError: No module named 'nowhere'",
    ),
    "Python's tags": (
        "name: !!python/object/apply:os.getcwd []",
        "is no YAML: could not determine",
    ),
}


@pytest.mark.parametrize(("text", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    """And with the mend."""
    with pytest.raises(ss.TopologyError) as raised:
        load(tmp_path, text)
    assert words in str(raised.value)


def test_storms_own_word_count(tmp_path: Path) -> None:
    """Storm's example for Flux needs no class of the user's."""
    found = load(
        tmp_path,
        """
name: yaml-topology
config: {topology.workers: 1}
spouts:
  - {id: spout-1, className: org.apache.storm.testing.TestWordSpout, parallelism: 1}
bolts:
  - {id: bolt-1, className: org.apache.storm.testing.TestWordCounter, cpuLoad: 10}
  - {id: bolt-2, className: org.apache.storm.flux.wrappers.bolts.LogInfoBolt}
streams:
  - {name: in, from: spout-1, to: bolt-1, grouping: {type: FIELDS, args: [word]}}
  - {name: out, from: bolt-1, to: bolt-2, grouping: {type: SHUFFLE}}
""",
    )
    done = complete_topology(found.topology, mock_sources={"spout-1": [["a"], ["b"], ["a"]]})
    assert sorted(done.values("bolt-1")) == [("a", 1), ("a", 2), ("b", 1)]
    clock = ManualClock()
    with LocalRunner(found.topology, clock=clock, taps=["spout-1"]) as runner:
        for _ in range(3):
            clock.advance(0.1)
            runner.run_until_idle()
        assert runner.statistics().components["bolt-1"]


def test_a_resource_is_found_below_a_folder_around_the_file(tmp_path: Path) -> None:
    """Storm looks in the root of the jar, where its examples have the folder configs."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "more.yaml").write_text(SPOUT)
    text = "includes: [{resource: true, file: /configs/more.yaml, override: false}]"
    assert "numbers" in load(tmp_path / "configs", text).topology.components
