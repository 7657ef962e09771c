"""Running tasks on packets: the same code under every runner. No Spark.

Read on in this order: :mod:`batch` (what is known of a batch), :mod:`columns` and :mod:`packet`
(what moves), :mod:`fitting` (what fits a declared type), :mod:`hashing` and :mod:`routing` (where
to), :mod:`inbox`, :mod:`emission` and :mod:`outbox` (what a task receives, what components emit
into, what is to be sent), :mod:`task` (the life of one task), :mod:`dispatch` (from outboxes to
packets), :mod:`level` (all of a stage's tasks in a partition), :mod:`reading` (the first stage),
:mod:`acker` (the last), :mod:`state_log` (what a task keeps).
"""
