"""Count words in four languages: split in Node.js, clean in Ruby, count in Perl, shout in C.

    cc -O2 -o examples/multilang/resources/shout examples/multilang/resources/shout.c
    sparkstorm run examples/multilang/word_count.py --available-now

Each task has a process of its own, which lives as long as the run, so the count in Perl is kept in
a plain hash.
"""

from pathlib import Path

import sparkstorm as ss
from sparkstorm.multilang import ShellBolt
from sparkstorm.spouts import IteratorSpout

RESOURCES = Path(__file__).parent / "resources"

SENTENCES = [
    "The cow jumped over the moon",
    "An apple a day keeps the doctor away",
    "Four score and seven years ago",
    "Snow White and the seven dwarfs",
    "I am at two with nature",
]


def shell(command: str, outputs: str) -> ShellBolt:
    """Return a bolt whose files are in the resources folder, which travels with the topology."""
    return ShellBolt(command, outputs=outputs, resources=RESOURCES)


def topology(args: list[str]) -> ss.Topology:
    """Wire the bolts; the arguments are the sentences."""
    builder = ss.TopologyBuilder()
    builder.set_spout("sentences", IteratorSpout(args or SENTENCES, outputs="sentence string"))
    split = shell("node split.js", "word string")
    builder.set_bolt("split", split, 2).shuffle_grouping("sentences")
    clean = shell("ruby clean.rb", "word string")
    builder.set_bolt("clean", clean, 2).shuffle_grouping("split")
    count = shell("perl count.pl", "word string, count long")
    builder.set_bolt("count", count, 2).fields_grouping("clean", ["word"])
    builder.set_bolt("shout", shell("./shout", "word string")).shuffle_grouping("count")
    return builder.create_topology()
