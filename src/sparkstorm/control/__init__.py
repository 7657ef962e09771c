"""Control: how other processes see and steer running topologies.

A driver lists itself in the registry (``registry.py``) and answers on a Unix socket
(``server.py``). The command line and the web page are its clients (``client.py``). Both ends speak
in the views of ``views.py``.
"""
