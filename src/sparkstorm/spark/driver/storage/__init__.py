"""The checkpoint folder on a file system: our files, Spark's logs, and the state in it."""
