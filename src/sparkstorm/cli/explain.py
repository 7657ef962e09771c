"""``sparkstorm explain``: the plan of a topology, without starting Spark."""

import os
from collections.abc import Sequence

from sparkstorm.cli.loading import load
from sparkstorm.cli.settings import parse_settings
from sparkstorm.planning.explain import explain, mermaid
from sparkstorm.planning.passes import make_plan

__all__ = ["explanation"]


def explanation(
    target: str,
    args: Sequence[str] = (),
    *,
    name: str | None = None,
    settings: Sequence[str] = (),
    picture: bool = False,
) -> str:
    """Return the plan as text or as a Mermaid picture, for a run on this machine."""
    loaded = load(target, args)
    config = parse_settings(settings, loaded.settings)
    plan = make_plan(
        loaded.topology,
        name=loaded.name if name is None else name,
        config=config,
        partitions=os.cpu_count() or 1,
    )
    return mermaid(plan) if picture else explain(plan)
