"""Storm's multi-language protocol: components whose code is a child process of any language.

The codec is pure: :mod:`messages` are values, :mod:`framing` turns bytes into objects and back,
:mod:`codec` puts both together for either end of the pipe. :mod:`shell` says how a child is
started, :mod:`child` talks to it; :mod:`shell_bolt` with :mod:`bolt_batch`, and :mod:`shell_spout`,
are the components.
"""

from sparkstorm.multilang.shell_bolt import ShellBolt
from sparkstorm.multilang.shell_spout import ShellSpout

__all__ = ["ShellBolt", "ShellSpout"]
