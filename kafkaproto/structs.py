"""Base classes of the generated dataclasses: `Struct` for every object, `Whole` for whole messages.

This module does not depend on any API.
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
    """Base of the generated dataclasses, with equality by value and a `repr` that omits defaults.

    If the value of a field is a struct, it is created when the field is first read. Most such fields are never read; each partition of a fetch
    response has three of them. Before the first read, the field's slot has an ellipsis as placeholder. `unmade` returns the name of this slot.
    """

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]  # structs are mutable

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # `dataclass` creates each class twice; only the second one, with slots, has the fields
        fields: dict[str, dataclasses.Field[Any]] = cls.__dict__.get("__dataclass_fields__", {})
        for field in fields.values():
            make: Any = field.default_factory
            # a subclass has slots only for its own fields
            if isinstance(make, type) and issubclass(make, Struct) and field.name in cls.__dict__:
                slot = cls.__dict__[field.name]
                setattr(cls, unmade(field.name), slot)
                setattr(cls, field.name, _created_on_access(slot, make))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _names(self))

    def __repr__(self) -> str:
        default = type(self)()
        values = [(name, getattr(self, name)) for name in _names(self)]
        fields = [f"{name}={value!r}" for name, value in values if value != getattr(default, name)]
        return f"{type(self).__name__}({', '.join(fields)})"


def _names(struct: Struct) -> Mapping[str, Any]:
    """Return a mapping whose keys are the names of all fields, including inherited ones; its values are `dataclasses.Field` objects."""
    fields: Mapping[str, Any] = struct.__dataclass_fields__  # type: ignore[attr-defined]  # every subclass is a dataclass
    return fields


class Whole(Struct):
    """Base of the dataclasses that are whole messages, with methods that encode and decode one object in a given version.

    Each call looks up how the given version is encoded. Code that handles many messages of one version can look it up once, with `layout` or
    `kafkaproto.api.codec`, and use the methods of the returned object.
    """

    __slots__ = ()
    layouts: ClassVar[Mapping[int, Message[Any]]] = {}
    """Maps each version to its wire layout: the fields in wire order, with their wire types."""

    @classmethod
    def layout(cls, version: int) -> Message[Self]:
        """Return the wire layout of a version: its fields in wire order, with their wire types.

        Raises UnsupportedVersion, naming the versions that exist.
        """
        try:
            return cls.layouts[version]
        except KeyError:
            known = f"v{min(cls.layouts)} to v{max(cls.layouts)}"
            raise UnsupportedVersion(None, version, known, name=cls.__name__) from None

    @classmethod
    def decode(cls, buffer: bytes | bytearray | memoryview, version: int) -> tuple[Self, int]:
        """Return the message at the start of a buffer, and its size in bytes.

        Record batches are slices of the buffer; all other values are copies. Raises UnsupportedVersion for a version that the message does not have,
        and DecodeError if the bytes are no valid message.
        """
        return cls.layout(version).decode_first(buffer)

    def encode(self, version: int) -> bytes:
        """Return the bytes of the message, without header and length.

        Raises UnsupportedVersion for a version that the message does not have, and EncodeError for a value that cannot be encoded.
        """
        return self.layout(version).encode(self)

    @classmethod
    def from_json(cls, data: Any, version: int) -> Self:
        """Return the message that JSON values describe, in the form of kafka-clients' JsonConverter.

        data: the parsed JSON object. Raises UnsupportedVersion for a version that the message does not have, and EncodeError for a field that is
        missing, unknown or of another type.
        """
        return json_form.from_json(cls.layout(version), data)

    def to_json(self, version: int) -> dict[str, Any]:
        """Return the message as JSON values, in the form of kafka-clients' JsonConverter.

        Raises UnsupportedVersion for a version that the message does not have, and EncodeError if a field that does not exist in this version has a
        value other than its default: this value would be lost.
        """
        return json_form.to_json(self.layout(version), self)


def _created_on_access(slot: Any, make: type[Struct]) -> property:
    get, put = slot.__get__, slot.__set__

    def value(self: Struct) -> Any:
        nested = get(self)
        if nested is ...:
            nested = make()
            put(self, nested)
        return nested

    return property(value, put)
