"""Planning: what the next batch holds, how many messages, and where they are read."""
