"""The price of a tuple in a bolt: sparkstorm's code alone, without Spark, in one process.

``python -m benchmarks.per_tuple [rounds]``, 5 unless given. The word count runs on the in-process
runner, 100,000 sentences a batch, with counts in state by ``add``, in state by ``get`` and ``put``,
and in a dictionary of the bolt. Prints nanoseconds for each tuple of a component, for reading,
executing, acking and sending, the least of all rounds. Exit code 1 if a count was wrong.
"""

import argparse
import gc
import sys
from collections.abc import Mapping

import sparkstorm as ss
from benchmarks.measure import BenchmarkError
from benchmarks.ours import Totals, WordCount, WordCountWithoutState, topology
from benchmarks.workload import counts_match
from sparkstorm.testing import LocalRunner

SENTENCES = 400_000
BATCH = 100_000


class GetAndPut(WordCount):
    """The same count, in two calls."""

    def execute(self, tup: ss.Tuple) -> None:
        """Count one word."""
        word = tup["word"]
        self.counts.put(word, self.counts.get(word, 0) + 1)
        self.collector.ack(tup)


BOLTS: Mapping[str, ss.Bolt] = {
    "add": WordCount(),
    "get and put": GetAndPut(),
    "a dictionary": WordCountWithoutState(),
}


def nanoseconds(count: ss.Bolt) -> dict[str, float]:
    """Run the word count once; return the time for each tuple of each component.

    Raises:
        BenchmarkError: a count was wrong.
    """
    totals = Totals(running=not isinstance(count, WordCountWithoutState))
    config = ss.Config(batch_min_messages=BATCH, batch_max_messages=BATCH)
    wired = topology(SENTENCES, count)
    with LocalRunner(wired, config=config, taps=["count"], on_tap=totals) as runner:
        gc.freeze()  # as Spark's workers do: the collector skips all objects loaded so far
        statistics = runner.run_until_idle()
    if not counts_match(totals.counts, SENTENCES):
        raise BenchmarkError(f"{type(count).__name__}: a count was wrong")
    whole = {name: statistics.component(name) for name in ("split", "count")}
    return {name: 1e9 * one.process_secs / one.executed for name, one in whole.items()}


def main() -> int:
    """Run all sides in turns and print the least figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    rounds = parser.parse_args().rounds
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in BOLTS}
    try:
        for _ in range(rounds):
            for name, bolt in BOLTS.items():
                runs[name].append(nanoseconds(bolt))
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    for name, found in runs.items():
        least = {component: min(run[component] for run in found) for component in found[0]}
        told = ", ".join(f"{component} {each:,.0f} ns" for component, each in least.items())
        print(f"{name + ':':14}{told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
