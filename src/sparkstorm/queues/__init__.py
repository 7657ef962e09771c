"""Spouts and bolts for queues: systems that hand out a message by a lease.

``queue.py`` says what the lease keeper asks of a system; each system's client library is loaded by
one file alone.
"""
