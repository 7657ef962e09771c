# What Cython makes of spaces.py; see docs/internals.md.
from sparkstorm.state.spaces.undo cimport Call

cdef class Space:
    cdef public object name
    cdef public Call _call
    cdef public object _base
    cdef public dict _fresh
