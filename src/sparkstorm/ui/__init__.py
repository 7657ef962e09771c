"""The web page and the REST interface: a process of its own, a client of running drivers.

:func:`serve` runs both until it is stopped, :class:`Server` on any thread; :func:`make_app` makes
the ASGI application alone. They see running topologies only through a :class:`Registry`.
"""

from sparkstorm.ui.app import make_app
from sparkstorm.ui.registry import Registry
from sparkstorm.ui.serving import DEFAULT_PORT, Server, serve

__all__ = ["DEFAULT_PORT", "Registry", "Server", "make_app", "serve"]
