"""Credentials: values that must not be shown, such as passwords, tokens and keys.

A :class:`Secret` is a text with a hidden value in its ``repr``. Every process that holds a secret
remembers the value. :func:`masked` replaces all remembered values in a text, in each form a library
may quote. All texts for people pass through :func:`masked` (see :mod:`sparkstorm.texts.showing`),
so a foreign library's error cannot give a password away by quoting it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, final
from urllib.parse import quote, quote_plus, unquote

__all__ = ["MASK", "Secret", "hidden", "holds_secret", "looks_secret", "masked", "untold"]

MASK = "***"

_SHORTEST = 4
"""The shortest masked value; shorter values cannot be told from other text."""

_SHORT = 8
"""A value of fewer characters is masked only as a whole word."""

_NAMES = re.compile(
    r"passw(or)?d|passphrase|\bpass\b|_pass\b|\bpwd|secret|token(?![a-z])|credential|jaas|\bdsn\b|\.pem$"
    r"|oauthbearer\.config|(api|access|private|account|shared|signing|encryption)[._-]?key",
    re.IGNORECASE,
)
"""Names of settings with secret values."""

_IN_URI = re.compile(r"[a-zA-Z][\w+.-]*://[^\s:@/]*:(?P<value>[^\s/]*)@")
_IN_PAIRS = re.compile(
    r"(?:password|passwd|secret|token|scram_\w+_key)\s*=\s*"
    r"(?:'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"|(?P<value>[^\s&;,]+))",
    re.IGNORECASE,
)


@final
class Secret(str):
    """A hidden text: use it wherever a component takes a password or an address.

    Libraries see the plain text; ``repr`` gives ``***``. A URI or a ``key=value`` list with a
    password is a secret as well; the password within is also masked on its own.

    >>> Secret("geheim")
    Secret('***')
    >>> masked("cannot log in as me:geheim@host")
    'cannot log in as me:***@host'
    """

    __slots__ = ()

    def __new__(cls, value: str) -> "Secret":
        """Make the secret, and remember it in this process."""
        made = super().__new__(cls, value)
        if value not in _FORMS:
            _FORMS[str(made)] = sorted(_forms(str(made)))
            _build()
        return made

    def __repr__(self) -> str:
        return f"Secret('{MASK}')"

    def __reduce__(self) -> tuple[type["Secret"], tuple[str]]:
        # Unpickling runs __new__, so the receiving process remembers the secret.
        return Secret, (str(self),)


_FORMS: dict[str, list[str]] = {}
"""The forms in which a text may quote a secret, for each secret of this process."""

_PATTERN: list[re.Pattern[str]] = []


def masked(text: str) -> str:
    """Return a text without any secret of this process."""
    return _PATTERN[0].sub(MASK, text) if _PATTERN else text


def looks_secret(name: str) -> bool:
    """Return whether a setting's name says that its value is secret.

    >>> [looks_secret(name) for name in ("sasl.password", "apiKey", "ssl.key.pem", "group.id")]
    [True, True, True, False]
    """
    return _NAMES.search(name) is not None


def holds_secret(text: str) -> bool:
    """Return whether a text contains a password, in a URI or as ``password=…``.

    >>> holds_secret("amqp://me:geheim@host/"), holds_secret("http://host/?q=1")
    (True, False)
    """
    return next(_passwords(text), None) is not None


def hidden(value: Any, name: str = "") -> Any:
    """Return a setting with a :class:`Secret` in place of each secret text in it.

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
    """Return an error to raise another error ``from``; None if its text has a secret.

    Python prints the causes of an error unmasked.
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
    """Return all forms in which a text may quote a value, its passwords, or its lines."""
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
    """Build the pattern of all secrets anew, the longest first."""
    forms = {form for forms in _FORMS.values() for form in forms}
    # Longest first: a short secret inside a longer one must not leave the rest of it readable.
    words = [
        re.escape(form) if len(form) >= _SHORT else rf"(?<![^\W_]){re.escape(form)}(?![^\W_])"
        for form in sorted(forms, key=lambda form: (-len(form), form))
    ]
    # Changed in place: other functions hold the list.
    _PATTERN[:] = [re.compile("|".join(words))] if words else []
