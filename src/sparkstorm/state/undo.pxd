# What Cython makes of undo.py; see docs/internals.md.
cimport cython

@cython.final
cdef class Call:
    cdef public object space
    cdef public object key
    cdef public object old
    cdef public list _changes
