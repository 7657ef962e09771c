# What Cython makes of messages.py; see docs/internals.md.
