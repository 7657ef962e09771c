"""RabbitMQ: a spout and a bolt, by AMQP 0-9-1.

They need an extra: ``pip install 'sparkstorm[rabbitmq]'``.
"""

from sparkstorm.queues.rabbitmq.bolt import RabbitMQBolt
from sparkstorm.queues.rabbitmq.spout import RabbitMQSpout

__all__ = ["RabbitMQBolt", "RabbitMQSpout"]
