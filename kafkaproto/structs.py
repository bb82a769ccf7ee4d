"""The base classes of the generated dataclasses: `Struct` for every object, `Whole` for the whole messages.

This module must never know an API.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from kafkaproto import json_form
from kafkaproto.defaults import unmade
from kafkaproto.errors import UnsupportedVersion
from kafkaproto.message import Message


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
        return json_form.from_json(cls.layout(version), data)

    def to_json(self, version: int) -> dict[str, Any]:
        """The message as JSON values, in the form of kafka-clients' JsonConverter. Raises EncodeError, UnsupportedVersion."""
        return json_form.to_json(self.layout(version), self)


def _made_when_looked_at(slot: Any, make: type[Struct]) -> property:
    get, put = slot.__get__, slot.__set__

    def value(self: Struct) -> Any:
        made = get(self)
        if made is ...:
            made = make()
            put(self, made)
        return made

    return property(value, put)
