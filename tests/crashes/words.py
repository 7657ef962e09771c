"""The driver program that is killed: word count of numbered lines, with witnesses.

Each line is a number and some words. The splitting bolt witnesses the number in a file, so that one
can see what was processed at least once; the counting bolt counts words in state, so that one can
see what was committed. Run it again on the same checkpoint after a kill. With ``--tap`` it writes
what the counting bolt emitted. The lines come from a file that the executors read, or with
``--queue`` from a server, by a spout in the driver.
"""

import argparse
import json
import os
from pathlib import Path

import sparkstorm as ss
from sparkstorm.spouts import LinesSpout
from tests.crashes.queue_spout import QueueSpout
from tests.tools.word_count import word_count


class Witness:
    """Writes down numbers of lines, in a file of its own for each process."""

    __slots__ = ("_path", "_seen")

    def __init__(self, folder: str) -> None:
        self._path = Path(folder) / f"{os.getpid()}.txt"
        self._seen: list[str] = []

    def saw(self, number: str) -> None:
        self._seen.append(number)

    def write(self) -> None:
        with self._path.open("a") as file:
            file.writelines(f"{number}\n" for number in self._seen)
        self._seen.clear()


class Split(ss.Bolt):
    """Witnesses a line and emits its words."""

    outputs = "word string"

    def prepare(
        self, config: ss.Config, context: ss.TaskContext, collector: ss.BoltCollector
    ) -> None:
        folder = config.user["witness"]
        self.witness = context.shared("witness", lambda: Witness(folder))

    def execute(self, tup: ss.Tuple) -> None:
        number, *words = tup["sentence"].split()
        self.witness.saw(number)
        for word in words:
            self.collector.emit([word], anchors=tup)
        self.collector.ack(tup)

    def finish_batch(self) -> None:
        self.witness.write()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--text")
    parser.add_argument("--queue", type=int, help="the port of the server, instead of --text")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--witness", required=True)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--tap")
    options = parser.parse_args()
    lines = QueueSpout(options.queue) if options.queue else LinesSpout(options.text)
    counts: dict[str, int] = {}

    def on_tap(key: object, task: int, rows: list[tuple[str, int]]) -> None:
        for word, count in rows:
            counts[word] = max(count, counts.get(word, 0))

    with ss.submit(
        word_count(lines, split=Split()),
        name="words",
        master=options.master,
        checkpoint=options.checkpoint,
        config={
            "batch_max_messages": options.batch,
            "partitions": 2,
            "user.witness": options.witness,
        },
        taps=["count"] if options.tap else [],
        on_tap=on_tap,
    ) as run:
        while not run.wait_until_drained(0.5):
            print(run.statistics(), flush=True)
    print("drained", run.statistics(), flush=True)
    if options.tap:
        Path(options.tap).write_text(json.dumps(counts))


if __name__ == "__main__":
    main()
