"""The checkpoint folder as the driver reaches it: local, or through Hadoop's file systems."""
