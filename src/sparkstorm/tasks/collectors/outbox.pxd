# What Cython makes of outbox.py; see docs/internals.md.
cimport cython

@cython.final
cdef class Outbox:
    cdef public object key
    cdef public object stream
    cdef public Py_ssize_t width
    cdef public bint wanted
    cdef public Py_ssize_t takes
    cdef public list rows
    cdef public list parents
    cdef public list ends
    cdef public list direct
    cdef public Py_ssize_t unread
    cdef public object _keys

    cpdef add(self, values, parent, task=*)
