"""Default values of a message's fields, and the comparison of a value with its default.

An encoder compares values with defaults in two cases. If a field does not exist in the version to encode, the encoder fails unless the field has its
default. If a field is tagged, the encoder sends it only if its value is not the default. The comparison exists twice: as a function for the slow
encoder, and as source text for generated encoders. This module does not depend on wire types.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from kafkaproto.flat import FlatCode

UNKNOWN_TAGS = "unknown_tagged_fields"

Defaults = dict[str, Callable[[], Any]]
"""Maps the name of each field, in the order of the fields, to a function that creates the default value of this field."""

UNMADE = "..."
"""The Python source text of the placeholder that generated decoders store in place of a nested struct: an ellipsis.

A new struct replaces the placeholder when the attribute with the struct is first read.
"""


def unmade(name: str) -> str:
    """Return the name of the slot that stores the value of the field ``name``, for a field whose type is a struct.

    The field itself is a property. If a message does not contain the field, generated decoders store the placeholder `...` in the slot. When the
    property is first read, it replaces the placeholder by a new struct.
    """
    return f"_{name}"


def defaults_of(cls: type) -> Defaults:
    """Return a dict from the name of each field of a dataclass to a function that creates the default value of the field."""
    return {field.name: _default_factory(field) for field in dataclasses.fields(cls)}


def _default_factory(field: dataclasses.Field[Any]) -> Callable[[], Any]:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return lambda: field.default


def differs(value: Any, default: Any) -> bool:
    """Return whether a value differs from its default. None and an empty list of unknown tagged fields count as equal."""
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
    """Add code that creates an empty object of the class ``cls`` in the variable ``target``.

    Setting the slots of this object one by one is cheaper than a call of ``__init__``.
    """
    new_object = code.constant("new", object.__new__)
    code.before(f"{target} = {new_object}({code.constant(cls.__name__, cls)})")


def emit_defaults(code: FlatCode, target: str, defaults: Defaults) -> None:
    """Add code that assigns the default values to the fields of the object ``target``. Fields with the same constant as default share a line."""
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
    """Return the source text of an expression that is true if the value of the expression ``source`` differs from ``default``.

    code: the generated function that will contain this expression; provides unique names for the variables that the expression assigns.
    """
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
