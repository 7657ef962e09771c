"""Plain PySpark by hand: split in ``mapInArrow``, the count in the JVM."""

from pyspark.sql import DataFrame

from benchmarks.peers.streaming_word_count import main, split


def count_words(sentences: DataFrame) -> DataFrame:
    """Split in Python; Spark's own aggregate counts, before and after the exchange by word."""
    return sentences.mapInArrow(split, "word string").groupBy("word").count()


if __name__ == "__main__":
    main("pyspark_jvm_count", count_words, default_sentences=2_600_000)
