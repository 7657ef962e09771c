"""Running a topology in this process, without Spark."""
