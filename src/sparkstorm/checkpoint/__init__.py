"""The checkpoint: the files that outlive a driver, and the right to write them.

:mod:`files` is the place, and :mod:`seal` the first line of each file. :mod:`lease` lets one driver
at a time write; :mod:`heartbeat` keeps the lease, :mod:`holder` names its owner. :mod:`identity` is
the checkpoint's own name. :mod:`manifest` holds the facts on which a topology and its checkpoint
must agree; :mod:`fitting_plan` plans a topology accordingly. :mod:`engine_log` is Spark's own
record of batches. :mod:`scratch` holds temporary folders.
"""
