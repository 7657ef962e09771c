# What Cython makes of tuples.py; see docs/internals.md.
cimport cython

@cython.final
@cython.freelist(8)
cdef class Tuple:
    cdef public object values
    cdef public object _origin
    cdef public dict _index_of
    cdef public Py_ssize_t _index
