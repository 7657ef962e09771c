# What Cython makes of loops.py; see docs/internals.md.
cimport cython
from sparkstorm.tasks.collectors.emission cimport BasicEmission, BoltEmission
from sparkstorm.tasks.collectors.stopwatch cimport Stopwatch
from sparkstorm.state.spaces.undo cimport Call
from sparkstorm.tuples cimport Tuple

@cython.locals(tup=Tuple, rows=list, ends=list, index=Py_ssize_t, left=Py_ssize_t, watch=Stopwatch, unheld=Py_ssize_t, unread=dict)
cpdef run_basic(bolt, BasicEmission emission, inbox, plan, failed)

@cython.locals(tup=Tuple, others=list, index=Py_ssize_t, left=Py_ssize_t, watch=Stopwatch, unheld=Py_ssize_t, unread=dict)
cpdef run_bolt(bolt, BoltEmission emission, inbox, plan, Call call, failed)
