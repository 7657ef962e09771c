"""Redis Streams: a spout that is a member of a consumer group, and a bolt that adds entries.

They need an extra: ``pip install 'sparkstorm[redis]'``.
"""

from sparkstorm.queues.redis.bolt import RedisStreamBolt
from sparkstorm.queues.redis.queue import RedisStreamQueue
from sparkstorm.queues.redis.server import Redis
from sparkstorm.queues.redis.spout import RedisStreamSpout

__all__ = ["Redis", "RedisStreamBolt", "RedisStreamQueue", "RedisStreamSpout"]
