"""What becomes of a message: planned, run, acked or retried. Runs in the driver, knows no Spark.

Read on in this order: :mod:`hosted` and :mod:`partitioned` (the two kinds of spout task),
:mod:`plans` (what a batch holds), :mod:`coordinator` (their life together), :mod:`halving` (what
to leave out when a batch fails), :mod:`retry` and :mod:`sizing` (two pure policies).
"""
