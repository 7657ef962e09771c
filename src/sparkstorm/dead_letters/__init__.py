"""Dead letters: messages that were given up, kept with everything that is known of them.

Read ``letter.py`` (what one is), ``values.py`` (how payloads become JSON), ``store.py`` (the files
they are kept in), ``office.py`` (who writes them there, or hands them to a sink), then
``requests.py`` and ``selection.py`` (what the command line asks for).
"""

from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.office import DeadLetterOffice, Desk
from sparkstorm.dead_letters.store import LetterStore
from sparkstorm.dead_letters.values import Unwritable

__all__ = ["DeadLetter", "DeadLetterOffice", "Desk", "LetterStore", "Unwritable"]
