"""Spaces: the parts of a task's state, each with keys and values of its own.

:mod:`base` has the committed content, in memory or read key by key; :mod:`space` lays a batch's
changes over a base; :mod:`undo` takes a call's changes back; :mod:`key_values` is the space that
bolts use by key.
"""
