"""Serving: a component of ours as the child of Storm, or of any parent that speaks the protocol.

:mod:`pipe` speaks to the parent, and keeps prints out of the protocol; :mod:`place` makes a context
of the handshake; :mod:`bolts` and :mod:`spouts` run the component; :mod:`serve` puts them together.
"""

from sparkstorm.multilang.serving.serve import serve

__all__ = ["serve"]
