"""Compares what the source gave out with what came out; knows nothing of how it was processed.

``python checker.py LINES WITNESSES COUNTS``: the numbered lines, the folder of witnesses, and the
counts that the state held in the end. Exits with 1 if a line was never processed, if one was
witnessed that was never given out, or if a count is not that of the lines. With ``--at-least`` a
count may be higher: a queue gives out again what it has not heard an ack of, and a new driver
cannot know that it is the same.
"""

import json
import sys
from collections import Counter
from pathlib import Path


def check(lines: Path, witnesses: Path, counts: Path, *, exact: bool) -> dict[str, object]:
    """Return what is wrong; nothing if all is right."""
    given: set[str] = set()
    words: Counter[str] = Counter()
    for line in lines.read_text().splitlines():
        number, *rest = line.split()
        given.add(number)
        words.update(rest)
    seen = {number for path in witnesses.iterdir() for number in path.read_text().split()}
    held = json.loads(counts.read_text())
    counted = {word: (held.get(word, 0), n) for word, n in words.items()}
    wrong = {w: (held, n) for w, (held, n) in counted.items() if held < n or (exact and held > n)}
    faults = {
        "never processed": sorted(given - seen),
        "never given out": sorted(seen - given),
        "count (state, lines)": wrong,
        "not in the lines": sorted(held.keys() - words.keys()),
    }
    return {name: fault for name, fault in faults.items() if fault}


if __name__ == "__main__":
    found = check(*map(Path, sys.argv[1:4]), exact="--at-least" not in sys.argv)
    print(json.dumps({name: str(fault)[:1000] for name, fault in found.items()}))
    sys.exit(bool(found))
