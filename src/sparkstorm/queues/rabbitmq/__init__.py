"""RabbitMQ: a spout and a bolt, by AMQP 0-9-1.

They need an extra: ``pip install 'sparkstorm[rabbitmq]'``.
"""
