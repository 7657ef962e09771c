"""The source of the query: Spark asks for batches, the coordinator answers."""
