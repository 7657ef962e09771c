"""The input of every run: 1,000 distinct sentences of 6 words, and the counts they must give.

Sentence ``i`` of a run is ``SENTENCES[i % 1000]``, so every engine can make any part of the input
without reading the rest, and the counts after ``n`` sentences are known exactly and cheaply.
The module only uses the standard library, because some peers run in an environment without Spark.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping

SENTENCE_COUNT = 1_000
WORDS_PER_SENTENCE = 6

# Drawing 6,000 words out of 10,000 leaves about 4,500 distinct ones.
_VOCABULARY_SIZE = 10_000
_SEED = 20_260_101
_CONSONANTS = "bcdfghjklmnprstvwz"
_VOWELS = "aeiou"


def _pick(rng: random.Random, choices: str) -> str:
    # random() is the one method whose sequence is the same in every Python version.
    return choices[int(rng.random() * len(choices))]


def _new_word(rng: random.Random) -> str:
    """Make up a word of 2 to 4 syllables."""
    syllables = 2 + int(rng.random() * 3)
    return "".join(_pick(rng, _CONSONANTS) + _pick(rng, _VOWELS) for _ in range(syllables))


def _vocabulary(rng: random.Random) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY_SIZE:
        words[_new_word(rng)] = None
    return list(words)


def _make_sentences() -> tuple[str, ...]:
    rng = random.Random(_SEED)
    words = _vocabulary(rng)
    sentences: dict[str, None] = {}
    while len(sentences) < SENTENCE_COUNT:
        picked = (words[int(rng.random() * len(words))] for _ in range(WORDS_PER_SENTENCE))
        sentences[" ".join(picked)] = None
    return tuple(sentences)


SENTENCES: tuple[str, ...] = _make_sentences()


def sentence(index: int) -> str:
    """Give sentence number ``index`` of the endless input."""
    return SENTENCES[index % SENTENCE_COUNT]


def sentences(start: int, stop: int) -> list[str]:
    """Give the sentences ``start`` up to, not including, ``stop``."""
    first = start % SENTENCE_COUNT
    rounds = (first + stop - start) // SENTENCE_COUNT + 1
    return list((SENTENCES * rounds)[first : first + stop - start])


def sentence_lists(start: int, stop: int, size: int) -> Iterator[list[str]]:
    """Give the sentences of a range in lists of ``size``, the last one perhaps shorter."""
    for first in range(start, stop, size):
        yield sentences(first, min(first + size, stop))


def expected_counts(n: int) -> dict[str, int]:
    """Say how often each word occurs in the first ``n`` sentences."""
    rounds, rest = divmod(n, SENTENCE_COUNT)
    counts: Counter[str] = Counter()
    for index, text in enumerate(SENTENCES):
        times = rounds + (index < rest)
        if times:
            for word in text.split():
                counts[word] += times
    return dict(counts)


def counts_match(counts: Mapping[str, int], n: int) -> bool:
    """Say whether ``counts`` are exactly those of the first ``n`` sentences."""
    return dict(counts) == expected_counts(n)
