"""The driver program that is killed: transfers between accounts in PostgreSQL, exactly once.

Each line of the file is a transfer: its number, from which account, to which, and how much. One in
a hundred fails at its first try. Run it again on the same checkpoint after a kill.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import sparkstorm as ss
from sparkstorm.postgres import PostgresSink
from sparkstorm.spouts import LinesSpout


class Check(ss.BasicBolt):
    """Reads a transfer; some it does not understand the first time."""

    outputs = "id long, source long, target long, amount long"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        transfer = [int(part) for part in tup["transfer"].split()]
        if transfer[0] % 100 == 7 and tup.attempt == 1:
            raise ValueError("not the first time")
        collector.emit(transfer)


class Running(ss.StatefulBolt):
    """Counts the transfers of each account in state, and passes them on with that number."""

    outputs = "id long, source long, target long, amount long, number long"

    def execute(self, tup: ss.Tuple) -> None:
        number = self.state.get(tup["source"], 0) + 1
        self.state.put(tup["source"], number)
        self.collector.emit([*tup.values, number], anchors=tup)
        self.collector.ack(tup)


class Bank(PostgresSink):
    """Moves the money."""

    def apply(self, cursor: Any, staged: Sequence[Any]) -> None:
        move = "update accounts set balance = balance + %s where id = %s"
        cursor.executemany(move, [(-amount, source) for _, source, _, amount, _ in staged])
        cursor.executemany(move, [(amount, target) for _, _, target, amount, _ in staged])
        cursor.executemany("insert into transfers values (%s, %s, %s, %s, %s)", staged)


def topology(path: str, dsn: str) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("transfers", LinesSpout(path, field="transfer"))
    builder.set_bolt("check", Check(), 2).shuffle_grouping("transfers")
    builder.set_bolt("running", Running(), 2).fields_grouping("check", "source")
    builder.set_bolt("bank", Bank(dsn), 2).shuffle_grouping("running")
    return builder.create_topology()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transfers", required=True)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--batch", type=int, default=100)
    options = parser.parse_args()
    with ss.submit(
        topology(options.transfers, options.dsn),
        name="bank",
        master=options.master,
        checkpoint=options.checkpoint,
        config={
            "processing.guarantee": "exactly-once",
            "batch_max_messages": options.batch,
            "batch_min_messages": options.batch,
            "partitions": 2,
            "retry_backoff_secs": 0.1,
            "retry_backoff_max_secs": 2.0,
        },
    ) as run:
        while not run.wait_until_drained(0.5):
            print(run.statistics(), flush=True)
    print("drained", run.statistics(), flush=True)


if __name__ == "__main__":
    main()
