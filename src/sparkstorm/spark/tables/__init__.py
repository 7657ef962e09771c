"""A checkpoint as tables: ``spark.read.format("sparkstorm")``.

Spark plans such a read in a Python process of its own beside the driver (``source.py``). This
process asks the driver's Python (``desk.py``), whose session reaches every file system and the
state. ``content.py`` reads the tables; nothing is locked or written, and nothing is unpickled.
"""
