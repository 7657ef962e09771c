"""Failures of Spark: their causes, and when the query is started again."""
