"""The defaults of a message's objects, and the comparison of a value with its default.

A field that differs from its default must be sent, or may not be lost; the comparison is here twice, for the readable
form and as an expression of flat code. This module must never know wire types.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from kafkaproto.flat import FlatCode

UNKNOWN_TAGS = "unknown_tagged_fields"

Defaults = dict[str, Callable[[], Any]]
"""Field name to what makes its default, in the order of the fields."""

UNMADE = "..."
"""What stands in the slot of a struct that is not made yet, as flat code writes it."""


def unmade(name: str) -> str:
    """The name of the slot of a field that is a struct and may not be made yet."""
    return f"_{name}"


def defaults_of(cls: type) -> Defaults:
    """What makes the defaults of a dataclass."""
    return {field.name: _default_factory(field) for field in dataclasses.fields(cls)}


def _default_factory(field: dataclasses.Field[Any]) -> Callable[[], Any]:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return lambda: field.default


def differs(value: Any, default: Any) -> bool:
    """Whether a value must be sent: kept unknown tags that are None or empty are the same."""
    if dataclasses.is_dataclass(default) and type(value) is type(default):
        return any(
            bool(getattr(value, f.name))
            if f.name == UNKNOWN_TAGS
            else differs(getattr(value, f.name), getattr(default, f.name))
            for f in dataclasses.fields(default)
        )
    if isinstance(default, list):
        return value is None or len(value) > 0
    return bool(value != default)


def emit_new(code: FlatCode, target: str, cls: type) -> None:
    """Write the making of an empty object. Setting its slots one by one is cheaper than a call of ``__init__``."""
    new = code.constant("new", object.__new__)
    code.before(f"{target} = {new}({code.constant(cls.__name__, cls)})")


def emit_defaults(code: FlatCode, target: str, defaults: Defaults) -> None:
    """Write the setting of fields to their defaults; those that share a constant share a line."""
    constants: dict[str, list[str]] = {}
    for name, make in defaults.items():
        default = make()
        if dataclasses.is_dataclass(default):
            constants.setdefault(UNMADE, []).append(f"{target}.{unmade(name)}")
        elif isinstance(default, list):
            code.before(f"{target}.{name} = []")
        else:
            constants.setdefault(repr(default), []).append(f"{target}.{name}")
    for text, targets in constants.items():
        code.before(f"{' = '.join(targets)} = {text}")


def emit_differs(code: FlatCode, source: str, default: Any) -> str:
    """The expression that is true if the value must be sent. Structs that were made are compared field by field."""
    if dataclasses.is_dataclass(default):
        owner, name = source.rsplit(".", 1)
        value = code.local(name)
        fields = [
            f"{value}.{f.name}"
            if f.name == UNKNOWN_TAGS
            else emit_differs(code, f"{value}.{f.name}", getattr(default, f.name))
            for f in dataclasses.fields(default)
        ]
        differs = " or ".join([f"{value} is None", *fields])
        return f"(({value} := {owner}.{unmade(name)}) is not {UNMADE} and ({differs}))"
    if isinstance(default, list):
        return f"({source} is None or len({source}) > 0)"
    return f"{source} is not None" if default is None else f"{source} != {default!r}"
