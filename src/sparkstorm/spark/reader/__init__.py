"""Code of the reader process, which Spark starts on the driver's host to plan the source."""
