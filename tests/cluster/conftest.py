"""The programs here are started by the tests."""

collect_ignore = ["count_words.py", "executors.py", "hoard.py", "recompute.py"]
