"""The command ``debug``: ``app.py`` has options and help, ``commands.py`` the work."""
