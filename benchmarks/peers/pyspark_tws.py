"""Plain PySpark by hand: split in ``mapInArrow``, ``transformWithState`` once per word."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.peers.streaming_word_count import main, split


class CountWord(StatefulProcessor):
    """Adds the new occurrences of a word to the count in its state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the one value of the state."""
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Count the rows of one word in one batch."""
        before = self._count.get()
        count = sum(1 for _ in rows) + (before[0] if before else 0)
        self._count.update((count,))
        yield Row(word=key[0], count=count)

    def close(self) -> None:
        """Do nothing."""


def count_words(sentences: DataFrame) -> DataFrame:
    """Split in Python, exchange by word, count in a state of its own for each word."""
    return (
        sentences.mapInArrow(split, "word string")
        .groupBy("word")
        .transformWithState(CountWord(), "word string, count long", "update", "none")
    )


if __name__ == "__main__":
    main("pyspark_tws", count_words, default_sentences=1_200_000)
