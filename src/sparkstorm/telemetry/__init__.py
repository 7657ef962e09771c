"""Telemetry: tells a user's own OpenTelemetry SDK of batches and messages.

``otel.py`` makes spans and metrics, ``outlet.py`` carries them out of the coordinator's way.
"""

from sparkstorm.telemetry.outlet import Outlet, opened_outlet

__all__ = ["Outlet", "opened_outlet"]
