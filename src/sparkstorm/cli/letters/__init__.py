"""The command ``dead-letters``: ``app.py`` has options and help, ``commands.py`` the work."""
