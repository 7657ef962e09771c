# What Cython makes of emission.py; see docs/internals.md.
cimport cython
from sparkstorm.tasks.collectors.outbox cimport Outbox
from sparkstorm.tasks.collectors.stopwatch cimport Stopwatch
from sparkstorm.tuples cimport Tuple

cdef class _Emission:
    cdef public object _component
    cdef public dict _boxes
    cdef public Outbox _default
    cdef public object _report
    cdef public object _inbox
    cdef public object receivers_of_last
    cdef public Stopwatch watch
    cdef public list late_acks

@cython.final
cdef class BasicEmission(_Emission):
    cdef public Py_ssize_t current
    cdef public list rows
    cdef public list ends
    cdef public Py_ssize_t _takes

@cython.final
cdef class BoltEmission(_Emission):
    cdef public Tuple input
    cdef public bytearray _status
    cdef public object _tracebacks
    cdef public tuple _anchors
    cdef public Py_ssize_t _parent_of_anchors
    cdef public object _inputs

    @cython.locals(mine=Tuple)
    cpdef ack(self, tup)

    cpdef _parent(self, anchors)

    cpdef _parent_of_many(self, tuple anchors)
