"""The command line: ``sparkstorm run``, ``explain``, ``dead-letters``, ``state`` and ``new``.

``main.py`` is the command tree: options and help alone. ``run.py``, ``explain.py``, ``new.py`` and
the folders ``letters`` and ``state`` do the work of a command each. All commands share ``edge.py``
(errors become exit codes), ``loading.py`` (from a file to a topology), ``settings.py`` (``-c
KEY=VALUE``) and ``terminal.py`` (safe output). A run also uses ``screen.py``,
``partition_table.py`` and ``interrupts.py``.
"""
