"""Reading: the first stage, from loads to routed messages.

:mod:`loads` runs the stage. :mod:`rows` has the tuples of a load, from a packet or from a split
(:mod:`splits`); :mod:`roots` has the roots that begin with them.
"""
