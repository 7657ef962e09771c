"""Wiring components: the builder, groupings, and the validated graph.

Read ``builder.py`` (the fluent interface), ``grouping.py`` (how tuples find tasks), ``graph.py``
(the finished topology), then ``validation.py`` (the rules of a good one).
"""
