"""The classes that users subclass, and the objects handed to them.

Read ``spout.py`` and ``bolt.py`` first: the two kinds of component. ``collector.py`` is how
components emit and ack, ``context.py`` how a task asks about itself, ``stateful.py`` a bolt with
state, and ``committer.py`` a bolt with exactly-once effects.
"""
