"""Flux: topologies in YAML, as Apache Storm's Flux writes them.

:mod:`document` reads the text with its includes, :mod:`beans` makes objects, :mod:`classes` finds
their classes, :mod:`wiring` puts the topology together.
"""

from sparkstorm.flux.wiring import FluxTopology, load_flux

__all__ = ["FluxTopology", "load_flux"]
