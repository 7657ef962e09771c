"""Running tasks on packets: the same code under every runner. No Spark, no threads of its own.

Read on in this order: :mod:`batch` (what is known of a batch), :mod:`columns` and :mod:`packet`
(what moves), :mod:`hashing` and :mod:`routing` (where to), :mod:`emission` (what components emit
into), :mod:`task` (the life of one task), :mod:`level` (all of a stage's tasks in a partition),
:mod:`reading` (the first stage), :mod:`acker` (the last).
"""
