# What Cython makes of undo.py; see docs/internals.md.
cimport cython

@cython.final
cdef class Call:
    cdef public Py_ssize_t changes
    cdef public object space
    cdef public object key
    cdef public object old
    cdef public list _later
