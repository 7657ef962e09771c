"""Apache Kafka. So far the partition manager: :mod:`progress`, on :mod:`ranges` and :mod:`ack_map`.

It is pure: no client library is needed to import or test it.
"""
