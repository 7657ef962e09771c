# What Cython makes of framing.py; see docs/internals.md.
