"""The programs here are started by the tests; they import one another as scripts do."""

collect_ignore = [
    "checker.py",
    "kill_loop.py",
    "processes.py",
    "queue_server.py",
    "queue_spout.py",
    "words.py",
]
