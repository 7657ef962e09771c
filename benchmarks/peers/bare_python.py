"""A bare Python loop in one process: the ceiling. No exchange, no state store, no guarantee."""

import argparse

from benchmarks.run_result import BatchMeter, RunResult
from benchmarks.workload import counts_match, sentence_lists


def run(sentences: int, batch: int) -> RunResult:
    """Count the words of so many sentences in one loop, and measure the loop."""
    meter = BatchMeter()
    counts: dict[str, int] = {}
    last: dict[str, int] = {}
    for texts in sentence_lists(0, sentences, batch):
        for text in texts:
            for word in text.split():
                count = counts.get(word, 0) + 1
                counts[word] = count
                last[word] = count  # the sink
        meter.batch_done(len(texts))
    return meter.result("bare_python", counts_ok=counts_match(last, sentences))


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(prog="bare_python")
    parser.add_argument("--sentences", type=int, default=3_000_000)
    parser.add_argument("--batch", type=int, default=200_000, help="sentences between two samples")
    options = parser.parse_args()
    run(options.sentences, options.batch).print_json()


if __name__ == "__main__":
    main()
