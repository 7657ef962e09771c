"""The price of a bad batch for the driver: the driver's code alone, without Spark, in one thread.

``python -m benchmarks.driver_costs [fraction]``, 1 unless given: the part of each size to measure.
Prints CPU seconds for roots that stay open over many batches; for many loads and ackers; for
many failures with one cause and with a cause each; and for tasks that hold tuples of failed roots.
"""

import argparse
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import sparkstorm as ss
from sparkstorm.acking.failed import Causes, FailedRoots
from sparkstorm.acking.ids import U64, make_root, seeds
from sparkstorm.acking.ledger import Ledger
from sparkstorm.acking.shares import Entries
from sparkstorm.acking.tally import HeldRoots, RootIndex, RootRange, Tally, TallyResult
from sparkstorm.batches.assembly import make_coordinator
from sparkstorm.batches.events.ended_roots import EndedRoots
from sparkstorm.batches.job_result import JobResult
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import DeadLetterQueue, LetterStore
from sparkstorm.packets.packet import Kind, Packet, PacketWriter
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.hosted.task import HostedTask
from sparkstorm.sources.source import Order, RootNumbers
from sparkstorm.sources.sources import Sources
from sparkstorm.tasks.acker import decode_result, encode_result
from sparkstorm.testing import ManualClock
from sparkstorm.testing.spouts import FeederSpout

ACKERS = 16


class Splits(ss.PartitionedSpout):
    """Gives out as many splits as are asked for, of so many messages each."""

    outputs = "n int"

    def __init__(self, each: int) -> None:
        self.each = each

    def plan(self, limit: int) -> list[ss.Split]:
        """Return one split."""
        return [ss.Split(count=min(limit, self.each))]

    def read(self, split: ss.Split) -> Iterator[Sequence[int]]:
        """Yield numbers; never called in this benchmark."""
        yield from ([n] for n in range(split.to_read))


class Holder(ss.StatefulBolt):
    """Holds every tuple."""

    def execute(self, tup: ss.Tuple) -> None:
        """Do nothing; never called in this benchmark."""


def plan_of(
    spout: ss.Spout | ss.PartitionedSpout,
    *,
    spouts: int = 1,
    bolts: int = 1,
    partitions: int = ACKERS,
) -> Plan:
    """Return the plan of one spout and one bolt that holds tuples, with batches of any size."""
    config = ss.Config(batch_min_messages=100 * partitions, batch_max_messages=100 * partitions)
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", spout, spouts)
    builder.set_bolt("hold", Holder(), bolts).fields_grouping("spout", ["n"])
    return make_plan(builder.create_topology(), config=config, partitions=partitions)


def cpu_secs(work: Callable[[], object]) -> float:
    """Return the CPU seconds of this thread for one call."""
    started = time.thread_time()
    work()
    return time.thread_time() - started


def results_of(tallies: Sequence[Tally]) -> list[TallyResult]:
    """Return the ackers' reports as the driver decodes them."""
    return [decode_result(Packet.decode(row)) for row in rows_of(tallies)]


def rows_of(tallies: Sequence[Tally]) -> list[bytes]:
    """Return the ackers' reports as they travel."""
    return [
        PacketWriter(n).for_driver(Kind.OUTCOME, encode_result(tally.result()))
        for n, tally in enumerate(tallies)
    ]


def open_windows(batches: int, *, each: int = 10, ackers: int = ACKERS) -> float:
    """Settle a batch while so many earlier batches have open roots; every root gets a share."""
    ledger = Ledger(30.0, 0.0)
    every: list[U64] = []
    for number in range(batches):
        span = RootRange(make_root(1, 1000 * number), 1000)
        tally = Tally([span], 0, 1)
        roots = np.arange(span.first, span.first + span.count, dtype=np.uint64)
        tally.add(Entries(roots[each:], seeds(roots[each:])))
        tally.hold(roots[:each])
        every.append(roots[:each])
        ledger.begin([span])
        ledger.settle([span], [tally.result()], 0.0)
    late = np.concatenate(every)
    tallies = [Tally([], acker, ackers) for acker in range(ackers)]
    for acker, tally in enumerate(tallies):
        mine = late[late % np.uint64(ackers) == acker]
        tally.add(Entries(mine, np.ones(len(mine), np.uint64)))
    results = [tally.result() for tally in tallies]
    return cpu_secs(lambda: ledger.settle([], results, 1.0))


def many_loads(loads: int, ackers: int) -> float:
    """Decode and settle a batch of loads of ten messages each, all complete."""
    spans = [RootRange(make_root(1 + n % 50, 1000 * n), 10) for n in range(loads)]
    ledger = Ledger(30.0, 0.0)
    ledger.begin(spans)
    tallies = [Tally(spans, acker, ackers) for acker in range(ackers)]
    roots = np.concatenate([np.arange(s.first, s.first + 10, dtype=np.uint64) for s in spans])
    for acker, tally in enumerate(tallies):
        mine = roots[roots % np.uint64(ackers) == acker]
        tally.add(Entries(mine, seeds(mine)))
    rows = rows_of(tallies)

    def settle() -> None:
        results = [decode_result(Packet.decode(row)) for row in rows]
        verdicts = ledger.settle(spans, results, 1.0)
        if len(verdicts.acked) != 10 * loads:
            raise AssertionError("not all roots were acked")

    return cpu_secs(settle)


def batches(partitions: int, *, spouts: int, each: int = 100) -> float:
    """Plan, finish and commit a batch of so many messages for each partition, four times."""
    plan = plan_of(Splits(each), spouts=spouts, bolts=partitions, partitions=partitions)
    coordinator = make_coordinator(plan, MemoryFiles(), ManualClock())
    coordinator.open(EngineLog())
    spent = 0.0
    for number in range(4):
        spent += cpu_secs(lambda n=number: coordinator.next_batch(n) and coordinator.loads(n))
        info = coordinator.info(number)
        tallies = [Tally(info.ranges, n, len(plan.ackers)) for n in range(len(plan.ackers))]
        roots = RootIndex(info.ranges).roots()
        for n, tally in enumerate(tallies):
            mine = roots[roots % np.uint64(len(tallies)) == n]
            tally.add(Entries(mine, seeds(mine)))
        result = JobResult(rows=rows_of(tallies), secs=1.0)
        spent += cpu_secs(lambda n=number, result=result: coordinator.finish(n, result))
    return spent / 4


def failure_of(task: int, text: str) -> ss.Failure:
    """Return the failure of a bolt whose database is away."""
    trace = "".join(f'  File "lib/level_{n}.py", line {n}, in call\n' for n in range(20))
    return ss.Failure(
        reason=ss.Reason.ERROR,
        component="hold",
        task=task,
        message=text,
        traceback=f"Traceback (most recent call last):\n{trace}{text}\n",
    )


def failing(roots: U64, *, tasks: int, texts: bool) -> list[Tally]:
    """Return ackers to which tasks reported every root as failed.

    ``texts``: each with its own text.
    """
    tallies = [Tally([RootRange(int(roots[0]), len(roots))], n, ACKERS) for n in range(ACKERS)]
    for task in range(tasks):
        mine = roots[task::tasks]
        causes = Causes()
        if texts:
            each = [causes.share(failure_of(task, f"key {root} timed out")) for root in mine]
            failed = FailedRoots.first_of_each(mine, each)
        else:
            failed = FailedRoots.alike(mine, failure_of(task, "ConnectionError: it is away"))
        for acker, tally in enumerate(tallies):
            part = failed.select(mine % np.uint64(ACKERS) == acker)
            if len(part):
                tally.fail(part)
    return tallies


def failures(
    messages: int, *, tasks: int, texts: bool = False, each: int = 1000
) -> tuple[float, int]:
    """Settle a batch whose messages all failed, in loads of a given size; encode the owed messages.

    Returns CPU seconds, and bytes that came from the ackers.
    """
    plan = plan_of(Splits(each), bolts=tasks)
    number = plan.tasks["spout"].start
    roots = np.arange(messages, dtype=np.uint64) + np.uint64(make_root(number, 0))
    rows = rows_of(failing(roots, tasks=tasks, texts=texts))
    sources = Sources(plan, dead_letters())
    task = sources.partitioned[number]
    sources.recover(lambda _: None, 0.0)
    pieces = messages // each
    order = Order(limit=messages, now=0.0, numbers=RootNumbers(), partitions=pieces, pieces=pieces)
    task.plan(order)
    ledger = Ledger(30.0, 0.0)
    span = RootRange(int(roots[0]), messages)
    ledger.begin([span])

    def deliver() -> None:
        results = [decode_result(Packet.decode(row)) for row in rows]
        verdicts = ledger.settle([span], results, 1.0)
        verdicts.failed.share_groups()
        sources.deliver(verdicts, 1.0)
        outstanding = tuple(task.progress(set()).outstanding)
        BatchPlan(number=1, run="", outstanding=outstanding).to_json()
        if task.pending - task.in_flight != messages:
            raise AssertionError("not all messages wait for a retry")

    return cpu_secs(deliver), sum(map(len, rows))


def hosted(messages: int) -> float:
    """Deliver so many failures to a hosted spout task."""
    feeder = FeederSpout("n int")
    plan = plan_of(feeder)
    number = plan.tasks["spout"].start
    task = HostedTask(plan, "spout", number, threading.Event(), dead_letters())
    task.open()
    for n in range(messages):
        feeder.feed([n], msg_id=n)
        task.step(messages + 1)
    [planned] = task.plan(Order(limit=messages, now=0.0, numbers=RootNumbers()))
    first = planned.load.first
    roots = np.arange(messages, dtype=np.uint64) + np.uint64(first or 0)
    failed = FailedRoots.alike(roots, failure_of(9, "away"))
    return cpu_secs(lambda: task.deliver(np.empty(0, np.uint64), failed, 0.0))


def signals(holders: int, roots: int) -> tuple[float, int]:
    """Tell so many tasks, which share the roots among them, that all the roots failed."""
    plan = plan_of(FeederSpout("n int"), bolts=holders)
    tasks = np.array(plan.tasks["hold"], np.int32)
    every = np.arange(roots, dtype=np.uint64)
    made = EndedRoots(plan)
    held = HeldRoots(every, tasks[(every % np.uint64(holders)).astype(np.int64)])
    failed = FailedRoots.alike(every, failure_of(1, "away"))
    sent = 0

    def tell() -> None:
        nonlocal sent
        made.note_held(held, np.ones(roots, np.bool_))
        made.note_ended(np.empty(0, np.uint64), failed)
        sent = sum(len(signal.packet) for signal in made.take())

    return cpu_secs(tell), sent


def dead_letters() -> DeadLetterQueue:
    """Return an dead_letters that keeps its letters in memory."""
    return DeadLetterQueue("costs", LetterStore(MemoryFiles()), ManualClock())


def main() -> None:
    """Measure each cost and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fraction", type=float, nargs="?", default=1.0)
    part = parser.parse_args().fraction

    def size(whole: int) -> int:
        return max(1, int(whole * part))

    windows = size(2000)
    print(f"{windows:,} batches with open roots, {ACKERS} ackers: {open_windows(windows):.3f} s")
    for ackers in (ACKERS, size(1000)):
        loads = size(1000)
        print(f"{loads:,} loads, {ackers:,} ackers: {many_loads(loads, ackers):.3f} s")
    for spouts in (1, size(1000)):
        partitions = size(1000)
        secs = batches(partitions, spouts=spouts)
        print(f"a batch of {partitions:,} partitions and {spouts:,} spout tasks: {secs:.3f} s")
    for texts, what in ((False, "one text"), (True, "a text of their own each")):
        count, tasks = size(1_000_000) // 1000 * 1000, size(1000)
        secs, nbytes = failures(count, tasks=tasks, texts=texts)
        told = f"{secs:.3f} s, {nbytes / 1e6:.1f} MB from the ackers"
        print(f"{count:,} failures of {tasks:,} tasks, {what}: {told}")
    count = size(100_000)
    print(f"{count:,} failures of a hosted spout: {hosted(count):.3f} s")
    holders, roots = size(200), size(1_000_000)
    secs, nbytes = signals(holders, roots)
    print(f"{holders:,} holders of {roots:,} failed roots: {secs:.3f} s, {nbytes / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
