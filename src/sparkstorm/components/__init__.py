"""What users subclass: spouts, bolts, and what these are handed."""
