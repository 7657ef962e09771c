"""Tasks: one task's batch, from packets to packets. The same code under every runner. No Spark.

Read on in this order: :mod:`job` (one stage in one partition), :mod:`reading` (the first stage),
:mod:`level` (all tasks of a stage in one partition), :mod:`task` (the life of one task),
:mod:`collectors` (components emit into them), :mod:`dispatch` and :mod:`routing` (from emitted
tuples to packets), :mod:`acker` (the last stage), :mod:`report` (counts and log lines).
"""
