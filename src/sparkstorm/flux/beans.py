"""Beans: the objects that a document describes by class, arguments, properties and methods."""

from typing import Any, final

from sparkstorm.errors import SparkstormError, TopologyError
from sparkstorm.flux.classes import find_class
from sparkstorm.flux.document import Node, fault

__all__ = ["BEAN_KEYS", "Beans"]

BEAN_KEYS = ("id", "name", "className", "constructorArgs", "properties", "configMethods")
"""The keys of every object."""


@final
class Beans:
    """Makes objects, and remembers those with an id, for references."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def make(self, node: Node) -> Any:
        """Make the object of a mapping.

        Raises:
            TopologyError: names the place, and what its class has against it.
        """
        name = node.text("className")
        made = self._guarded(node, lambda: self._called(find_class(name), node))
        for one in node.items_of("properties"):
            setattr(made, one.text("name"), self._value(one, one.get("value", one)))
        for one in node.items_of("configMethods"):
            method = getattr(made, one.text("name"), None)
            if not callable(method):
                raise fault(one, f"{name} has no method {one['name']!r}")
            arguments = [self._value(one, value) for value in one.get("args") or ()]
            self._guarded(one, lambda method=method, arguments=arguments: method(*arguments))
        if "id" in node:
            self._made[node.text("id")] = made
        return made

    def _called(self, kind: Any, node: Node) -> Any:
        given = node.get("constructorArgs") or []
        if isinstance(given, dict):
            return kind(**{name: self._value(node, value) for name, value in given.items()})
        if not isinstance(given, list):
            raise fault(node, f"constructorArgs is a list or a mapping: write [{given}]")
        return kind(*[self._value(node, value) for value in given])

    def _value(self, node: Node, value: Any) -> Any:
        """Return a value of the document, with its references resolved."""
        if isinstance(value, list):
            return [self._value(node, one) for one in value]
        if not isinstance(value, Node):
            return value
        if "ref" in value:
            return self._known(value, value["ref"])
        if "reflist" in value:
            return [self._known(value, one) for one in value["reflist"]]
        if "className" in value:
            return self.make(value)
        return {key: self._value(node, one) for key, one in value.items()}

    def _known(self, node: Node, name: str) -> Any:
        if name not in self._made:
            known = ", ".join(sorted(self._made)) or "none"
            raise fault(node, f"there is no component {name!r} before it; there are: {known}")
        return self._made[name]

    @staticmethod
    def _guarded(node: Node, action: Any) -> Any:
        try:
            return action()
        except TopologyError:
            raise
        except (Exception, SystemExit) as error:
            kind = "" if isinstance(error, SparkstormError) else f"{type(error).__name__}: "
            raise fault(
                node, f"{node.get('className', node.get('name'))}: {kind}{error}"
            ) from error
