"""Dead letters: given-up messages, kept with all that is known of each.

Read ``letter.py`` (the letter as a value), ``values.py`` (how payloads become JSON), ``store.py``
(the files of letters), ``letter_queue.py`` (a run's way to the files, or to a sink), then
``requests.py`` and ``selection.py`` (the requests of the command line).
"""

from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue, QueueWriter
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.dead_letters.values import Unwritable

__all__ = ["DeadLetter", "DeadLetterQueue", "QueueWriter", "LetterStore", "Unwritable"]
