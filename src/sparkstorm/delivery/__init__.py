"""What becomes of a message: planned, run, acked or retried. Runs in the driver, knows no Spark.

Read on in this order: :mod:`hosted` and :mod:`partitioned` (the two kinds of spout task),
:mod:`planner` and :mod:`plans` (what a batch holds), :mod:`record` (a batch until its commit),
:mod:`coordinator` (their life together), :mod:`poison_search` (which messages make a batch fail),
:mod:`retry` and :mod:`sizing` (two pure policies). Then what outlives a driver: :mod:`lease` (one
at a time), :mod:`journal` (what it writes down), :mod:`succession` (what the next one does with
it). Then what is apart: :mod:`letters` (of messages given up), :mod:`transactions` (exactly once).
"""
