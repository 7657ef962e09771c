"""REST for what Storm UI has no paths: messages, their trees, dead letters, partitions, lines."""

from sparkstorm.ui.rest.look import ROUTER as LOOK
from sparkstorm.ui.rest.steer import ROUTER as STEER

__all__ = ["LOOK", "STEER"]
