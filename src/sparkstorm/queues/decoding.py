"""From a delivery to a row of values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from sparkstorm.formats import Format, reader_of, type_of
from sparkstorm.queues.queue import Delivery

__all__ = ["Decoder", "WithDelivery", "decoder_of", "outputs_of"]


@final
@dataclass(frozen=True, slots=True)
class WithDelivery:
    """A decoder that sees the whole delivery: its attributes, group and number of deliveries.

    >>> read = WithDelivery(lambda delivery: (delivery.body.decode(), delivery.deliveries))

    Args:
        read: a function of a :class:`Delivery`; a tuple as result is a row of values.
    """

    read: Callable[[Delivery], Any]


Decoder: TypeAlias = Format | Callable[[bytes], Any] | WithDelivery
"""A format's name, a function of a message's bytes, or :class:`WithDelivery`."""


def decoder_of(given: Decoder) -> Callable[[Delivery], Sequence[Any]]:
    """Return the function that makes a delivery a row: a tuple is a row, all else is one value.

    >>> decoder_of("json")(Delivery(message_id=1, lease=1, body=b"[1, 2]"))
    ([1, 2],)

    Raises:
        ConfigError: there is no such format.
    """
    if isinstance(given, WithDelivery):
        read = given.read
        return lambda delivery: _row(read(delivery))
    decode: Any = reader_of(given)
    return lambda delivery: _row(decode(delivery.body))


def outputs_of(fields: str, given: Decoder) -> str:
    """Return the declared stream: a single field without a type gets the type of its format.

    >>> outputs_of("body", "string"), outputs_of("a long, b", len)
    ('body string', 'a long, b')
    """
    kind = None if isinstance(given, WithDelivery) else type_of(given)
    plain = fields.strip().isidentifier()
    return f"{fields} {kind}" if plain and kind else fields


def _row(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)
