"""State: what tasks keep from batch to batch.

:mod:`log` is the change log and the image of one task's state, made of :mod:`spaces`: keys and
values (:mod:`key_values`, :mod:`expiring`), held tuples (:mod:`held`) and the attributes of bolts
(:mod:`attributes`). :mod:`images` bounds what a process holds.
"""
