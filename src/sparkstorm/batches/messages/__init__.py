"""Messages, for people: which are unfinished, and how the attempts at a message went.

``chronicle.py`` keeps attempts with their trees, ``kept.py`` what is kept of one message, and
``listing.py`` lists the unfinished. ``lines.py`` has the log lines of messages, ``levels.py`` the
levels of components.
"""
