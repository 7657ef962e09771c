"""State: all that tasks keep from batch to batch.

:mod:`image` is a task's state in a worker process, :mod:`log` its change log in a store of chunks
(:mod:`stores`). A state is made of :mod:`spaces`: keys and values, also with a time to live
(:mod:`expiring`), held tuples (:mod:`held`), and the attributes of bolts (:mod:`attributes`).
:mod:`kept` has the stored forms of values, :mod:`names` the rules for keys and names,
:mod:`image_cache` bounds the memory of a process, :mod:`view` shows a state to people.
"""
