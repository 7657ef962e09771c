"""Amazon SQS: a spout, and a bolt that sends.

It needs an extra: ``pip install 'sparkstorm[sqs]'``.
"""

from sparkstorm.errors import EnvironmentFault

try:
    import boto3  # noqa: F401 - what follows needs it
except ImportError as error:
    raise EnvironmentFault("SQS needs the package boto3: pip install 'sparkstorm[sqs]'") from error

from sparkstorm.queues.sqs.bolt import SQSBolt
from sparkstorm.queues.sqs.spout import SQSSpout

__all__ = ["SQSBolt", "SQSSpout"]
