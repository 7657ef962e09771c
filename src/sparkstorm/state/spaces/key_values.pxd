# What Cython makes of key_values.py; see docs/internals.md.
cimport cython
from sparkstorm.state.spaces.space cimport Space
from sparkstorm.state.spaces.undo cimport Call

cdef class KeyValues(Space):
    cdef public Py_ssize_t _count

    @cython.locals(fresh=dict)
    cpdef get(self, key, default=*)

    @cython.locals(call=Call, fresh=dict)
    cpdef put(self, key, value)

    @cython.locals(call=Call, fresh=dict)
    cpdef add(self, key, amount=*)
