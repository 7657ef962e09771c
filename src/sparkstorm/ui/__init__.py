"""The web page and the REST interface: a process of its own, a client of running drivers."""
