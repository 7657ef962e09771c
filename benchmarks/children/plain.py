"""The same bolts with nothing between them and the pipe: plain.py Split|Count."""

# mypy: ignore-errors
# A child is a program of its own, as its users write them: without types.

import json
import os
import sys
from collections import Counter


def read():
    text = sys.stdin.readline()
    if not text:
        sys.exit(0)
    sys.stdin.readline()
    return json.loads(text)


def write(message):
    sys.stdout.write(json.dumps(message) + "\nend\n")


def run(process):
    hello = read()
    with open(os.path.join(hello["pidDir"], str(os.getpid())), "w"):
        pass
    write({"pid": os.getpid()})
    while True:
        tup = read()
        if tup["stream"] == "__heartbeat":
            write({"command": "sync"})
            sys.stdout.flush()
            continue
        for values in process(tup["tuple"]):
            emit = {"command": "emit", "tuple": values, "anchors": [tup["id"]]}
            write({**emit, "need_task_ids": False})
        write({"command": "ack", "id": tup["id"]})


def split(values):
    return [[word] for word in values[0].split()]


COUNTS = Counter()


def count(values):
    COUNTS[values[0]] += 1
    return [[values[0], COUNTS[values[0]]]]


run({"Split": split, "Count": count}[sys.argv[1]])
