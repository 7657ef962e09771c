"""Batches: planned, run, judged, committed. Runs in the driver, and knows no Spark.

Read on in this order: :mod:`batch_plan` and :mod:`planner` (the content of a batch), :mod:`batch`
(one batch until its commit), :mod:`coordinator` (all batches of a run), :mod:`poison_search` (the
messages that make a batch fail), :mod:`transactions` (exactly once), :mod:`journal` (the files that
a driver writes for each batch). In :mod:`recovery` a driver takes over the last batch of an earlier
driver. In :mod:`events` is what rides in a batch beside messages: ticks, taps, ended roots.
"""
