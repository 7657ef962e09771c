# What Cython makes of stopwatch.py; see docs/internals.md.
cimport cython

@cython.final
cdef class Stopwatch:
    cdef public bint is_on
    cdef public list marks
    cdef public list times

    @cython.locals(now=double, secs=double, calls=Py_ssize_t)
    cpdef Py_ssize_t read(self, Py_ssize_t index) except -1
