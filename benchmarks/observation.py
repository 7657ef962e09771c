"""The price of being seen: the word count with latencies and traced messages, and without.

    python -m benchmarks.observation [--rounds N]

The settings by default and the same without both, in turns, each in a process of its own. Told are
the medians, and the ratio of the two: wanted is 0.97 at least.
"""

import argparse
import json
import statistics
import subprocess
import sys

MODES = ("tracked", "unobserved")


def figures(mode: str) -> tuple[float, float]:
    """Return the sentences a second of one run, and its seconds of CPU for a million."""
    command = [sys.executable, "-m", "benchmarks.ours", "--mode", mode]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    if not found["counts_ok"]:
        sys.exit(f"{mode}: the counts are wrong")
    return found["sentences_per_s"], found["cpu_s_per_million"]


def main() -> None:
    """Run both in turns and print how they compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    found: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
    for _ in range(rounds):
        for mode in MODES:
            found[mode].append(figures(mode))
    rates = {mode: statistics.median(rate for rate, _ in found[mode]) for mode in MODES}
    cpu = {mode: statistics.median(secs for _, secs in found[mode]) for mode in MODES}
    for mode in MODES:
        print(f"{mode:12} {rates[mode]:10,.0f} sentences/s {cpu[mode]:8.2f} s of CPU a million")
    seen, unseen = MODES
    print(f"with / without: {rates[seen] / rates[unseen]:.3f} of the throughput, ", end="")
    print(f"{cpu[seen] / cpu[unseen]:.3f} of the CPU")


if __name__ == "__main__":
    main()
