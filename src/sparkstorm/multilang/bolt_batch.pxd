# What Cython makes of bolt_batch.py; see docs/internals.md.
