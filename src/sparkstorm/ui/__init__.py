"""The web page and the REST interface: a process of its own, a client of running drivers.

:func:`make_app` makes the ASGI application, :func:`serve` runs it. Both see running topologies
only through a :class:`Registry`, and so through the control of each.
"""

from sparkstorm.ui.app import make_app
from sparkstorm.ui.registry import Registry

__all__ = ["Registry", "make_app"]
