"""What a message's objects are made of: the base of the generated dataclasses, and their defaults.

A field that differs from its default must be sent, or may not be lost; the comparison is here twice, for the readable
form and as an expression of flat code. This module must never know wire types.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kafkaproto.errors import UnsupportedVersion
from kafkaproto.flat import FlatCode

if TYPE_CHECKING:
    from typing import Self

    from kafkaproto.message import Message

UNKNOWN_TAGS = "unknown_tagged_fields"

Defaults = dict[str, Callable[[], Any]]
"""Field name to what makes its default, in the order of the fields."""


class Struct:
    """Base of the generated dataclasses: equality by value, and a text that leaves defaults out.

    A field that is a struct itself is made when somebody looks at it, for most are never looked at (three of them in
    every partition of a fetch response). Until then its slot, which flat code calls `unmade`, holds an ellipsis.
    """

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]  # structs are mutable

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # `dataclass` makes each class twice: the second time, with slots, the fields are known
        fields: dict[str, dataclasses.Field[Any]] = cls.__dict__.get("__dataclass_fields__", {})
        for field in fields.values():
            make: Any = field.default_factory
            # the slots of a class that somebody derives are those of its own fields
            if isinstance(make, type) and issubclass(make, Struct) and field.name in cls.__dict__:
                slot = cls.__dict__[field.name]
                setattr(cls, unmade(field.name), slot)
                setattr(cls, field.name, _made_when_looked_at(slot, make))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _names(self))

    def __repr__(self) -> str:
        default = type(self)()
        values = [(name, getattr(self, name)) for name in _names(self)]
        shown = [f"{name}={value!r}" for name, value in values if value != getattr(default, name)]
        return f"{type(self).__name__}({', '.join(shown)})"


def _names(struct: Struct) -> Mapping[str, Any]:
    """The names of all fields: those of a derived class are more than its slots."""
    fields: Mapping[str, Any] = struct.__dataclass_fields__  # type: ignore[attr-defined]  # who derives is a dataclass
    return fields


class Whole(Struct):
    """Base of the dataclasses that are whole messages, for people who have an object or bytes and know the version.

    Who handles many messages of one version keeps its layout (`layout`, or `kafkaproto.api.codec`).
    """

    __slots__ = ()
    layouts: ClassVar[Mapping[int, Message[Any]]] = {}
    """Version to wire layout."""

    @classmethod
    def layout(cls, version: int) -> Message[Self]:
        """The wire layout of a version. Raises UnsupportedVersion, naming the versions that there are."""
        try:
            return cls.layouts[version]
        except KeyError:
            known = f"v{min(cls.layouts)} to v{max(cls.layouts)}"
            raise UnsupportedVersion(None, version, known, name=cls.__name__) from None

    @classmethod
    def decode(cls, buffer: bytes | bytearray | memoryview, version: int) -> tuple[Self, int]:
        """The message that a buffer starts with, and how many bytes it took. Raises DecodeError, UnsupportedVersion.

        Record batches come out as slices of the buffer, everything else as values of its own.
        """
        return cls.layout(version).decode_first(buffer)

    def encode(self, version: int) -> bytes:
        """The bytes of the message, without header and length. Raises EncodeError, UnsupportedVersion."""
        return self.layout(version).encode(self)

    @classmethod
    def from_json(cls, data: Any, version: int) -> Self:
        """The message that JSON values tell of, in the form of kafka-clients' JsonConverter. Raises EncodeError, UnsupportedVersion."""
        return cls.layout(version).from_json(data)

    def to_json(self, version: int) -> dict[str, Any]:
        """The message as JSON values, in the form of kafka-clients' JsonConverter. Raises EncodeError, UnsupportedVersion."""
        return self.layout(version).to_json(self)


UNMADE = "..."
"""What stands in the slot of a struct that is not made yet, as flat code writes it."""


def unmade(name: str) -> str:
    """The name of the slot of a field that is a struct and may not be made yet."""
    return f"_{name}"


def _made_when_looked_at(slot: Any, make: type[Struct]) -> property:
    get, put = slot.__get__, slot.__set__

    def value(self: Struct) -> Any:
        made = get(self)
        if made is ...:
            made = make()
            put(self, made)
        return made

    return property(value, put)


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
