"""Sources: where messages come from, and the verdicts they get. Runs in the driver.

The three kinds of source are :mod:`hosted` (the spout lives in the driver), :mod:`partitioned`
(only offsets pass the driver) and :mod:`replayed` (dead letters that run again). They share
:mod:`retry` (when a message is tried again), :mod:`blame` (which message may have killed a driver)
and :mod:`letters` (the dead letter of a message that is given up).
"""
