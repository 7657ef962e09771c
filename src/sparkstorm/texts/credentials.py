"""Values that nobody may read in what is shown: passwords, tokens, keys.

A :class:`Secret` is a text that hides its value in ``repr``, and that each process it comes to
remembers. :func:`masked` replaces every remembered value in a text, in each form that a library
may quote it in. All texts for people go through it (:mod:`sparkstorm.texts.showing`), so an error
of a foreign library cannot give a password away by quoting it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, final
from urllib.parse import quote, quote_plus, unquote

__all__ = ["MASK", "Secret", "hidden", "holds_secret", "looks_secret", "masked", "untold"]

MASK = "***"

_SHORTEST = 4
"""A shorter value cannot be told from other text."""

_SHORT = 8
"""A value of fewer characters counts only where it is a word of its own."""

_NAMES = re.compile(
    r"passw(or)?d|passphrase|\bpass\b|_pass\b|\bpwd|secret|token(?![a-z])|credential|jaas|\bdsn\b|\.pem$"
    r"|oauthbearer\.config|(api|access|private|account|shared|signing|encryption)[._-]?key",
    re.IGNORECASE,
)
"""Names of settings whose values nobody may read."""

_IN_URI = re.compile(r"[a-zA-Z][\w+.-]*://[^\s:@/]*:(?P<value>[^\s/]*)@")
_IN_PAIRS = re.compile(
    r"(?:password|passwd|secret|token|scram_\w+_key)\s*=\s*"
    r"(?:'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"|(?P<value>[^\s&;,]+))",
    re.IGNORECASE,
)


@final
class Secret(str):
    """A text that is not shown: give it wherever a component takes a password or an address.

    It is the text itself to every library, and ``***`` to ``repr``. A URI or a list of
    ``key=value`` that holds a password is one, too: then the password alone is masked as well.

    >>> Secret("geheim")
    Secret('***')
    >>> masked("cannot log in as me:geheim@host")
    'cannot log in as me:***@host'
    """

    __slots__ = ()

    def __new__(cls, value: str) -> "Secret":
        """Make it, and remember it in this process."""
        made = super().__new__(cls, value)
        if value not in _FORMS:
            _FORMS[str(made)] = sorted(_forms(str(made)))
            _build()
        return made

    def __repr__(self) -> str:
        return f"Secret('{MASK}')"

    def __reduce__(self) -> tuple[type["Secret"], tuple[str]]:
        return Secret, (str(self),)  # so that the process it comes to remembers it


_FORMS: dict[str, list[str]] = {}
"""Each secret of this process, with what a text may quote of it."""

_PATTERN: list[re.Pattern[str]] = []


def masked(text: str) -> str:
    """Return a text without any secret that this process knows."""
    return _PATTERN[0].sub(MASK, text) if _PATTERN else text


def looks_secret(name: str) -> bool:
    """Tell whether a setting of this name holds what nobody may read.

    >>> [looks_secret(name) for name in ("sasl.password", "apiKey", "ssl.key.pem", "group.id")]
    [True, True, True, False]
    """
    return _NAMES.search(name) is not None


def holds_secret(text: str) -> bool:
    """Tell whether a text has a password in it, as a URI or as ``password=…``.

    >>> holds_secret("amqp://me:geheim@host/"), holds_secret("http://host/?q=1")
    (True, False)
    """
    return next(_passwords(text), None) is not None


def hidden(value: Any, name: str = "") -> Any:
    """Return a setting with a :class:`Secret` for each text in it that nobody may read.

    >>> hidden({"db": {"password": "geheim", "urls": ["redis://:geheim@host"], "port": 1}})
    {'db': {'password': Secret('***'), 'urls': [Secret('***')], 'port': 1}}
    """
    if isinstance(value, str):
        return Secret(value) if value and (looks_secret(name) or holds_secret(value)) else value
    if isinstance(value, Mapping):
        return {
            key: hidden(item, name if looks_secret(name) else str(key))
            for key, item in value.items()
        }
    if type(value) in (list, tuple):
        return type(value)(hidden(item, name) for item in value)
    return value


def untold(error: BaseException) -> BaseException | None:
    """Return an error to raise another one ``from``: None if its text has a secret.

    Python prints an error's causes as they are.
    """
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        try:
            text = f"{one}{one!r}{getattr(one, '__notes__', '')}"
        except (Exception, SystemExit):  # noqa: BLE001 - any error of any __str__
            return None
        if masked(text) != text:
            return None
        one = one.__cause__ or one.__context__
    return error


def _forms(value: str) -> set[str]:
    """The ways in which a text may quote a value, or the passwords in it, or a line of it."""
    parts = {value, *_passwords(value)}
    parts |= {line for line in value.splitlines() if len(line) >= _SHORT and "-----" not in line}
    found = set()
    for part in parts:
        data = part.encode(errors="replace")
        found |= {part, quote(data, safe=""), quote(data), quote_plus(data), unquote(part)}
        found |= {repr(part)[1:-1], repr(data)[2:-1], json.dumps(part)[1:-1]}
    return {form for form in found if len(form) >= _SHORTEST}


def _passwords(text: str) -> Iterator[str]:
    for match in (*_IN_URI.finditer(text), *_IN_PAIRS.finditer(text)):
        value = next((one for one in match.groups() if one), "")
        if value:
            yield value
            yield re.sub(r"\\(.)", r"\1", unquote(value))


def _build() -> None:
    """Make the pattern of all secrets anew, the longest first."""
    forms = {form for forms in _FORMS.values() for form in forms}
    words = [
        re.escape(form) if len(form) >= _SHORT else rf"(?<![^\W_]){re.escape(form)}(?![^\W_])"
        for form in sorted(forms, key=lambda form: (-len(form), form))
    ]
    _PATTERN[:] = [re.compile("|".join(words))] if words else []
