"""The commands on running topologies: list, status, kill, activate, deactivate, messages, trace.

``app.py`` has the options and the help, ``commands.py`` asks the drivers, and ``view.py`` draws.
"""
