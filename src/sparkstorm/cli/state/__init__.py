"""The command ``state``: ``app.py`` has options and help, ``commands.py`` the work."""
