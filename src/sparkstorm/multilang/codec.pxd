# What Cython makes of codec.py; see docs/internals.md.
