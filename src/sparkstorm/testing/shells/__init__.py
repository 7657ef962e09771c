"""Conformance suites for both ends of the multi-language protocol.

:func:`check_shell_bolt` and :func:`check_shell_spout` check a child, whatever it is written in;
:func:`check_shell_parent` checks a parent by the children in :mod:`probes`.
"""

from sparkstorm.testing.shells.children import check_shell_bolt, check_shell_spout
from sparkstorm.testing.shells.parents import BoltRun, check_shell_parent

__all__ = ["BoltRun", "check_shell_bolt", "check_shell_spout", "check_shell_parent"]
