"""Bolts of a word count on pystorm, the usual adapter of Storm's users: words.py Split|Count."""

# mypy: ignore-errors
# A child is a program of its own, as its users write them: without types.

import sys
from collections import Counter

from pystorm.bolt import Bolt


class Split(Bolt):
    """Cuts a sentence into words."""

    def process(self, tup):
        for word in tup.values[0].split():
            self.emit([word])


class Count(Bolt):
    """Counts words in its memory."""

    def initialize(self, conf, context):
        self.counts = Counter()

    def process(self, tup):
        word = tup.values[0]
        self.counts[word] += 1
        self.emit([word, self.counts[word]])


globals()[sys.argv[1]]().run()
