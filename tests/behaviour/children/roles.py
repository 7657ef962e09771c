"""Children that do what real ones do, each a function: python3 roles.py ROLE [ARGUMENT…].

Standard library only, and no adapter of anybody's: what goes over the pipe is seen here.
"""

# mypy: ignore-errors
# A child is a program of its own, as its users write them: without types.

import json
import os
import sys
import time
from collections import Counter


def read():
    lines = []
    while True:
        line = sys.stdin.readline()
        if not line:
            sys.exit(2)
        if line.strip() == "end":
            return json.loads("".join(lines))
        lines.append(line)


def send(command, **fields):
    write(json.dumps({"command": command, **fields}))


def write(text):
    sys.stdout.write(f"{text}\nend\n")
    sys.stdout.flush()


def emit(values, anchors=(), **fields):
    send("emit", tuple=values, anchors=list(anchors), need_task_ids=False, **fields)


def shake_hands():
    hello = read()
    open(os.path.join(hello["pidDir"], str(os.getpid())), "w").close()
    write(json.dumps({"pid": os.getpid()}))
    return hello


def tuples():
    """Yield the tuples that carry data, and answer heartbeats."""
    while True:
        tup = read()
        if isinstance(tup, list):
            continue
        if tup["stream"] == "__heartbeat":
            send("sync")
        else:
            yield tup


# --- bolts ---------------------------------------------------------------------------------------


def split():
    shake_hands()
    for tup in tuples():
        for word in tup["tuple"][0].split():
            emit([word], [tup["id"]])
        send("ack", id=tup["id"])


def count():
    """Counts in its memory, and tells its pid."""
    shake_hands()
    counts = Counter()
    for tup in tuples():
        word = tup["tuple"][0]
        counts[word] += 1
        emit([word, counts[word], os.getpid()], [tup["id"]])
        send("ack", id=tup["id"])


def batch():
    """Emits and acks when it has so many tuples, in reverse order."""
    shake_hands()
    waiting = []
    for tup in tuples():
        waiting.append(tup)
        if len(waiting) == int(sys.argv[2]):
            emit([[one["tuple"][0] for one in waiting]], [one["id"] for one in waiting])
            for one in reversed(waiting):
                send("ack", id=one["id"])
            waiting.clear()


def upon():
    """Does what the tuple says: each value is a word for what becomes of it."""
    shake_hands()
    kept = []
    for tup in tuples():
        word, tuple_id = tup["tuple"][0], tup["id"]
        if word == "fail":
            send("fail", id=tuple_id)
            send("log", msg="failed one")
        elif word == "exit":
            sys.stderr.write("I give up\n")
            sys.exit(3)
        elif word == "die as pystorm":
            send("error", msg="Python ValueError raised")
            send("sync")
            send("fail", id=tuple_id)
            sys.exit(1)
        elif word == "hang":
            time.sleep(1000)
        elif word == "print":
            print("hello from a print")  # noqa: T201
            send("ack", id=tuple_id)
        elif word == "garbage":
            write('{"command": "emit", "tuple": [')
        elif word == "keep":
            kept.append(tuple_id)
        elif word == "release":
            for one in kept:
                emit(["late"], [one])
                send("ack", id=one)
            kept.clear()
            send("ack", id=tuple_id)
        elif word == "ack twice":
            send("ack", id=tuple_id)
            send("ack", id=tuple_id)
        elif word == "emit after ack":
            send("ack", id=tuple_id)
            emit(["lost?"], [tuple_id])
        elif word == "odd anchor":
            emit(["lost?"], ["999"])
            send("ack", id=tuple_id)
        elif word == "odd stream, then ack":
            emit(["x"], [tuple_id], stream="nobody's")
            send("ack", id=tuple_id)
        elif word == "odd stream":
            emit(["x"], [tuple_id], stream="nobody's")
        elif word == "tell":
            for level in range(5):
                send("log", msg=f"level {level}", level=level)
            send("metrics", name="seen", params=2)
            send("metrics", name="sizes", params={"small": 1})
            send("error", msg="an error of its own")
            send("dance", speed=3)
            sys.stderr.write("a line of stderr\n" * 3)
            sys.stderr.flush()
            send("ack", id=tuple_id)
        else:
            emit([word], [tuple_id])
            send("ack", id=tuple_id)


def mute():
    """Never answers the handshake."""
    time.sleep(1000)


def silent():
    """Never acks, as Ruby's starter bolt."""
    shake_hands()
    for tup in tuples():
        emit([tup["tuple"][0]])


def ids():
    """Waits for the task ids of each emit, and emits them."""
    shake_hands()
    waiting = []
    while True:
        tup = waiting.pop(0) if waiting else read()
        if tup["stream"] == "__heartbeat":
            send("sync")
            continue
        send("emit", tuple=[tup["tuple"][0]], anchors=[tup["id"]])
        got = read()
        while not isinstance(got, list):
            waiting.append(got)
            got = read()
        emit([got], [tup["id"]], stream="ids")
        send("ack", id=tup["id"])


def facts():
    """Emits its handshake, its folder and a variable of its environment."""
    hello = shake_hands()
    for tup in tuples():
        facts = {
            "context": hello["context"],
            "name": hello["conf"]["topology.name"],
            "mine": hello["conf"].get("mine"),
            "files": sorted(os.listdir(".")),
            "pid file": os.path.exists(os.path.join(hello["pidDir"], str(os.getpid()))),
            "variable": os.environ.get("FOR_THE_CHILD"),
            "path": os.environ["PATH"].split(os.pathsep)[-1],
        }
        emit([json.dumps(facts)], [tup["id"]])
        send("ack", id=tup["id"])


def ticks():
    """Emits the stream and task of what it gets."""
    shake_hands()
    for tup in tuples():
        emit([f"{tup['comp']} {tup['stream']} {tup['task']}"], [tup["id"]])
        send("ack", id=tup["id"])


# --- spouts --------------------------------------------------------------------------------------


def numbers():
    """Emits so many numbers with numbers as ids; each again until it is acked; then ends."""
    shake_hands()
    left, open_ones, told = list(range(int(sys.argv[2]))), set(), []
    while True:
        command = read()
        if command["command"] == "next":
            if left:
                number = left.pop(0)
                open_ones.add(number)
                send("emit", tuple=[number, list(told)], id=number, need_task_ids=False)
            elif not open_ones:
                sys.exit(0)
        elif command["command"] == "ack":
            open_ones.discard(command["id"])
        elif command["command"] == "fail":
            left.append(command["id"])
        else:
            told.append(command["command"])
        send("sync")


def told():
    """Tells its pid, once."""
    shake_hands()
    sent = False
    while True:
        command = read()
        if command["command"] == "next" and not sent:
            send("emit", tuple=[os.getpid()], id=1, need_task_ids=False)
            sent = True
        send("sync")


def crashing():
    """Ends after each second message; its source remembers where it was."""
    shake_hands()
    path, sent = sys.argv[2], 0
    while True:
        command = read()
        if command["command"] == "next":
            with open(path) as file:
                number = int(file.read() or 0)
            if number < 5:
                send("emit", tuple=[number], id=str(number), need_task_ids=False)
                with open(path, "w") as file:
                    file.write(str(number + 1))
                sent += 1
        send("sync")
        if sent == 2:
            sys.exit(1)


def dancing():
    """Sends what no spout may."""
    shake_hands()
    read()
    send("dance")
    send("sync")
    read()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
