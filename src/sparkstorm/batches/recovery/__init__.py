"""Recovery: the last batch of an earlier driver, taken over by the next one."""
