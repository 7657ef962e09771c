"""Answers in JSON: any text and number is written so that every client can read it."""

import json
import math
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, final

from starlette.responses import Response

from sparkstorm.errors import ConfigError, SparkstormError, WorldError
from sparkstorm.texts.credentials import MASK, Secret, hidden, masked

__all__ = ["Answer", "Fault", "NotThereError", "fault_of", "masked_settings", "plain"]


class NotThereError(ConfigError):
    """The address names a topology, component, message or letter that is not there."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a request was refused, in the words of Storm's REST interface.

    Attributes:
        error: the kind of fault.
        errorMessage: what to do.
    """

    error: str
    errorMessage: str


@final
class Answer(Response):
    """JSON in ASCII, so that half a character is one escape; what is no number is null."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200) -> None:
        super().__init__(content, status_code)

    def render(self, content: Any) -> bytes:
        """Write a view, or JSON's own types."""
        return json.dumps(plain(content), allow_nan=False).encode()


def plain(value: Any) -> Any:
    """Return views as JSON's types, without secrets; NaN and infinity become None.

    >>> plain({"mean": float("nan"), "counts": (1, 2)})
    {'mean': None, 'counts': [1, 2]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def masked_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without secrets; a driver masks them, and the page does not rely on that.

    >>> masked_settings({"db": {"password": "geheim"}, "port": 1})
    {'db': {'password': '***'}, 'port': 1}
    """
    return {name: _open(one) for name, one in hidden(settings).items()}


def _open(value: Any) -> Any:
    if isinstance(value, Secret):
        return MASK
    if isinstance(value, dict):
        return {name: _open(one) for name, one in value.items()}
    return [_open(one) for one in value] if isinstance(value, list | tuple) else value


def fault_of(error: SparkstormError) -> tuple[int, Fault]:
    """Return status and text of an error: 404, 400 for a bad order, 503 for a driver away."""
    if isinstance(error, NotThereError):
        return 404, Fault(error="Not Found", errorMessage=str(error))
    if isinstance(error, ConfigError):
        return 400, Fault(error="Bad Request", errorMessage=str(error))
    if not isinstance(error, WorldError):
        return 500, Fault(error="Internal Server Error", errorMessage=str(error))
    return 503, Fault(error="Service Unavailable", errorMessage=str(error))
