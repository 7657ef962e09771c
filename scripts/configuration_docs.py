"""Write docs/configuration.md from sparkstorm.config: ``python scripts/configuration_docs.py``.

A test fails when the page is not up to date.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from sparkstorm.config import COMPONENT_KEYS, Config

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"

_HEAD = """\
# Configuration

<!-- Generated from sparkstorm.config by scripts/configuration_docs.py: edit the fields there. -->

Settings go to `submit(…, config=…)`, as a `Config` or as a mapping, and to the command line as
`-c KEY=VALUE`. A key is a field's name or Storm's key; `none` means unset.

```python
>>> import sparkstorm as ss
>>> ss.Config(message_timeout_secs=60).message_timeout_secs
60.0
>>> ss.Config.parse({"topology.message.timeout.secs": "60"}).message_timeout_secs
60.0
>>> ss.Config.parse({"user.table": "words"}).user["table"]
'words'

```

A single component may override %s: `set_spout(…).add_configuration("max_retries", 3)`.

| setting | Storm's key | type | default | what it does |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    keys = ", ".join(f"`{key}`" for key in sorted(COMPONENT_KEYS))
    return _HEAD % keys + "".join(_rows())


def _rows() -> Iterator[str]:
    for name, field in Config.model_fields.items():
        alias = f"`{field.alias}`" if field.alias else ""
        text = (field.description or "").replace("|", "\\|")
        yield f"| `{name}` | {alias} | {_type(field)} | {_default(field)} | {text} |\n"


def _type(field: FieldInfo) -> str:
    kind: Any = field.annotation
    names = [
        "unset" if part is type(None) else getattr(part, "__name__", repr(part))
        for part in get_args(kind)
    ]
    if isinstance(kind, type) and not names:
        return kind.__name__
    return "mapping" if "dict" in str(kind) else " or ".join(name.strip("'") for name in names)


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    return "unset" if value is None else f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
