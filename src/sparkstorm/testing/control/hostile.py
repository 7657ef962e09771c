"""Hostile texts: what fields, ids and exceptions of foreign origin may hold."""

__all__ = ["HOSTILE"]

HOSTILE = (
    "<script>window.broken=1</script>",
    "\"><img src=x onerror='window.broken=2'>",
    "'; window.broken=3; //",
    "{{ 7 * 7 }}{% raw %}${7*7}",
    "</textarea></template></svg><svg onload=window.broken=4>",
    "javascript:window.broken=5",
    "../../../../etc/passwd",
    "a/b?c=d&e#f%2e%2e%00;g",
    "line one\nline two\r\nSet-Cookie: a=b\n\ndata: forged",
    "bell \x07 escape \x1b[2J nul \x00",
    "right to left \u202e drowssap",
    "half a character \ud800",
    "\u65e5\u672c\u8a9e \U0001f600 e\u0301",
    "x" * 5000,
    "",
    " ",
    "..",
)
"""Each must be shown as text, wherever it stands; ``window.broken`` tells of a script that ran."""
