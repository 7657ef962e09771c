"""What becomes of a message: planned, run, acked or retried. Runs in the driver, knows no Spark.

Read on in this order: :mod:`hosted` and :mod:`partitioned` (the two kinds of spout task),
:mod:`plans` (what a batch holds), :mod:`coordinator` (their life together), :mod:`poison_search`
(which messages make a batch fail), :mod:`retry` and :mod:`sizing` (two pure policies).
"""
