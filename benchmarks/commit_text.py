"""How many acks beyond the commit point find room beside a committed offset, and how fast.

    python -m benchmarks.commit_text

Each line: the set, its offsets, how many the text keeps, the characters it takes, and the
milliseconds to write and to read it. The last column is what the room could hold of such a set at
most, by its entropy: a UTF-16 unit that is no surrogate tells log2(63,488) = 15.95 bits.
"""

import math
import random
import time

from sparkstorm.kafka.offsets.ranges import Range, Ranges
from sparkstorm.kafka.offsets.stored import Stored
from sparkstorm.kafka.offsets.texts import MOST_TEXT, from_text, to_text

_OFFSETS = 200_000
_UNIT_BITS = math.log2(63_488)


def sets() -> dict[str, tuple[list[Range], float | None]]:
    """The sets by name, and how likely each offset is done, if that is all that is known of it."""
    dice = random.Random(1)
    found: dict[str, tuple[list[Range], float | None]] = {
        "one stuck, the rest done": ([(1, _OFFSETS)], None),
        "every other one done": ([(n, n + 1) for n in range(1, _OFFSETS, 2)], None),
        "every tenth one stuck": ([(n, n + 9) for n in range(1, _OFFSETS, 10)], None),
    }
    for share in (0.01, 0.1, 0.5, 0.9, 0.99):
        done = (n for n in range(1, _OFFSETS) if dice.random() < share)
        found[f"random {share:.0%} done"] = (list(Ranges((n, n + 1) for n in done)), share)
    return found


def entropy(share: float) -> float:
    """Bits that one offset tells."""
    return -share * math.log2(share) - (1 - share) * math.log2(1 - share)


def main() -> None:
    """Print a line for each set."""
    print(f"{'set of ' + format(_OFFSETS, ','):28}{'done':>9}{'kept':>9}{'chars':>7}", end="")
    print(f"{'write ms':>10}{'read ms':>9}{'bound':>9}")
    for name, (done, share) in sets().items():
        stored = Stored(0, done, "benchmark-0f1e2d3c", "k3eAHaXMS22OJkxoJoUxVQ")
        total = sum(stop - start for start, stop in done)
        began = time.perf_counter()
        text, dropped = to_text(stored)
        wrote = time.perf_counter()
        from_text(0, text, stored.topic_id)
        read = time.perf_counter()
        bound = total
        if share is not None:
            bound = min(total, int(MOST_TEXT * _UNIT_BITS / entropy(share) * share))
        print(f"{name:28}{total:9,}{total - dropped:9,}{len(text):7,}", end="")
        print(f"{1e3 * (wrote - began):10.1f}{1e3 * (read - wrote):9.1f}{bound:9,}")


if __name__ == "__main__":
    main()
