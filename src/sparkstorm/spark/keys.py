"""Search a grouping key for each partition, so that Spark puts the key's rows there.

``transformWithState`` groups by key, and Spark puts a key into the partition
``pmod(murmur3(key, 42), partitions)``. The search tries salt after salt until a key falls into
the wanted partition. It finds the same keys every time, so a restart finds its state again.
"""

__all__ = ["partition_key", "partition_keys", "spark_hash"]

_SEED = 42


def partition_keys(partitions: int) -> list[str]:
    """Return one key per partition, in the order of the partitions."""
    return [partition_key(partition, partitions) for partition in range(partitions)]


def partition_key(partition: int, partitions: int) -> str:
    """Return the first key of the form ``partition/3#salt`` that falls into the partition.

    >>> partition_key(0, 1)
    'partition/0#0'
    """
    salt = 0
    while True:
        key = f"partition/{partition}#{salt}"
        if spark_hash(key) % partitions == partition:
            return key
        salt += 1


def spark_hash(text: str, seed: int = _SEED) -> int:
    """Return Spark SQL's ``hash`` of a string: Murmur3 x86 32, signed, its tail byte by byte.

    Source: Spark's ``Murmur3_x86_32.hashUnsafeBytes``.

    >>> spark_hash("Spark")
    228093765
    """
    data = text.encode()
    mixed = seed
    whole = len(data) - len(data) % 4
    for start in range(0, whole, 4):
        mixed = _mix_into(mixed, int.from_bytes(data[start : start + 4], "little"))
    for byte in data[whole:]:
        mixed = _mix_into(mixed, byte - 256 if byte > 127 else byte)
    mixed ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed ^= mixed >> shift
        mixed = mixed * factor & 0xFFFFFFFF
    return mixed - (1 << 32) if mixed >= 1 << 31 else mixed


def _mix_into(mixed: int, word: int) -> int:
    word = word * 0xCC9E2D51 & 0xFFFFFFFF
    word = _rotated(word, 15) * 0x1B873593 & 0xFFFFFFFF
    return (_rotated(mixed ^ word, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & 0xFFFFFFFF
