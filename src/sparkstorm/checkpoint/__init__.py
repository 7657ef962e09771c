"""The checkpoint: the files that outlive a driver, and who may write them.

:mod:`files` is the place, :mod:`seal` the first line of each file, :mod:`lease` lets one driver at
a time write, :mod:`manifest` holds what a topology and its checkpoint must agree on, and
:mod:`engine_log` the batches that Spark has heard of and committed.
"""
