"""The driver program that is killed: words of numbered lines from a queue, with witnesses.

``python killed_words.py SPOUT WITNESSES CHECKPOINT``: the spout is a file of pickled bytes.
"""

import pickle
import sys
from pathlib import Path

import sparkstorm as ss
from tests.crashes.words import Split
from tests.tools.word_count import word_count


def main() -> None:
    spout = pickle.loads(Path(sys.argv[1]).read_bytes())
    with ss.submit(
        word_count(spout, split=Split()),
        name="queue-words",
        master="local[2]",
        checkpoint=sys.argv[3],
        config={"batch_max_messages": 100, "partitions": 2, "user.witness": sys.argv[2]},
    ) as run:
        while not run.wait_until_drained(0.5):
            pass


if __name__ == "__main__":
    main()
