"""Benchmarks: sparkstorm against itself, other engines and Spark by hand."""
