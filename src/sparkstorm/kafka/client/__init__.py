"""The one package that knows confluent-kafka, and makes its errors ours.

Read :mod:`troubles` (how clients are made, and what they say when something is wrong), then
:mod:`desk` (a driver's view of a cluster), :mod:`cuts` (logs that lost their ends), :mod:`reader`
(ranges of offsets, on an executor), :mod:`sender` (a producer) and :mod:`transactions` (a producer
of transactions, in the driver).
"""

from sparkstorm.errors import EnvironmentFault

try:
    import confluent_kafka  # noqa: F401 - what follows needs it
except ImportError as error:
    raise EnvironmentFault(
        "Kafka needs the package confluent-kafka: pip install 'sparkstorm[kafka]'"
    ) from error

__all__: list[str] = []
