"""Texts for people: values as text, masked secrets, errors of user code, log lines.

``showing.py`` makes any text safe to print, ``credentials.py`` masks passwords, ``user_errors.py``
turns errors of user code into reasons, and ``logs.py`` makes safe loggers.
"""
