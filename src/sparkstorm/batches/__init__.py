"""Batches: planned, run, judged, committed. Runs in the driver, and knows no Spark.

Read on in this order: :mod:`batch` (the phases of one batch), :mod:`coordinator` (all batches of a
run), :mod:`drive` (the steps of a batch, which runners carry out), :mod:`agenda` (the next batch),
:mod:`bookkeeper` (verdicts), :mod:`transactions` (exactly once), :mod:`journal` (the files that a
driver writes for each batch). :mod:`assembly` puts the parts together.

In :mod:`planning` is the content of the next batch; in :mod:`poisons` the search for messages that
make a batch fail; in :mod:`recovery` the handover from one driver to the next; in :mod:`events` the
things that ride in a batch beside messages: ticks, taps, ended roots.
"""
