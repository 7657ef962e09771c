"""A bolt whose lookups overlap: twenty tuples at a time in one task.

    sparkstorm run examples/concurrent_bolt.py --available-now

Each lookup takes 50 ms. One after the other, 400 lookups would take 20 seconds; here one second.
"""

import asyncio

import sparkstorm as ss


class LookUp(ss.BasicBolt):
    """Stands for a call to a database or a web service; each ``await`` lets other tuples go on."""

    outputs = "number long, square long"

    async def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        await asyncio.sleep(0.05)
        collector.emit([tup["number"], tup["number"] ** 2])


def topology(args: list[str]) -> ss.Topology:
    """Wire the lookups; the first argument says how many."""
    count = int(args[0]) if args else 400
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", ss.spouts.IteratorSpout(range(count), outputs="number long"))
    builder.set_bolt("look-up", LookUp(), concurrency=20).shuffle_grouping("numbers")
    return builder.create_topology()
