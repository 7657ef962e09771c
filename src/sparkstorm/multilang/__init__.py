"""Storm's multi-language protocol: components whose code is a child process of any language.

The codec is pure: :mod:`messages` are values, :mod:`framing` turns bytes into objects and back,
:mod:`codec` puts both together for either end of the pipe.
"""
