"""Texts for people: values as text, secrets kept out, what user code raised, log lines."""
