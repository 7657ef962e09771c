"""Word count, measured: sparkstorm against itself, other engines and Spark by hand."""
