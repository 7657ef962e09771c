"""The programs here are started by the tests; they import one another as scripts do."""

collect_ignore = ["count_words.py", "executors.py", "hoard.py", "recompute.py"]
