"""Bolts of a word count on storm.py, Apache Storm's own adapter: storm_words.py Split|Count."""

# mypy: ignore-errors
# A child is a program of its own, as its users write them: without types.

import sys
from collections import Counter

import storm


class Split(storm.BasicBolt):
    """Cuts a sentence into words."""

    def process(self, tup):
        for word in tup.values[0].split():
            storm.emit([word])


class Count(storm.BasicBolt):
    """Counts words in its memory."""

    def initialize(self, conf, context):
        self.counts = Counter()

    def process(self, tup):
        word = tup.values[0]
        self.counts[word] += 1
        storm.emit([word, self.counts[word]])


globals()[sys.argv[1]]().run()
