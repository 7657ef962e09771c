"""Try random topologies under random faults, on all cores, until one breaks a promise.

python scripts/simulate.py --seeds 1000 --first 0
"""

import argparse
import multiprocessing
import sys
import time
from pathlib import Path

from sparkstorm.testing import BrokenPromise, Faults, simulate

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tools of the tests are no package

from tests.tools.random_topology import random_topology
from tests.tools.truth import Truth


def play(seed: int) -> str | None:
    """Run one seed; return what is wrong."""
    drawn = random_topology(seed)
    try:
        simulate(
            drawn.topology,
            seed=seed,
            faults=Faults(),
            config=drawn.config,
            partitions=drawn.partitions,
            taps=(),
            reproducible=drawn.reproducible,
            observer=Truth(drawn),
        )
    except BrokenPromise as broken:
        return f"random_topology({seed}): {broken}"
    return None


def main() -> int:
    """Run all seeds; print the first that fails, and how fast it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    args = parser.parse_args()
    started = time.monotonic()
    with multiprocessing.get_context("spawn").Pool() as pool:
        seeds = range(args.first, args.first + args.seeds)
        for fault in pool.imap_unordered(play, seeds, chunksize=8):
            if fault is not None:
                print(fault)
                return 1
    minutes = (time.monotonic() - started) / 60
    print(f"{args.seeds} simulations, {args.seeds / minutes:.0f} a minute")
    return 0


if __name__ == "__main__":
    sys.exit(main())
