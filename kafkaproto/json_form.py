"""JSON form of messages, with the names and formats of kafka-clients' generated ``JsonConverter`` classes.

Fields are in camel case and wire order; bytes and records are base64; uuids are formatted like Java's ``Uuid`` (URL-safe base64 without padding). A
tagged field is only present if it differs from its default. Unknown tagged fields have no JSON form. Kafka's converters omit record bytes when they
write JSON, but they can read the base64 that this module writes. This module does not depend on any API.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any, TypeVar

from kafkaproto.arrays import ArrayType
from kafkaproto.defaults import differs
from kafkaproto.errors import EncodeError, safe_repr
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, BytesType, Float64, LengthPrefixed, StringType, Uuid
from kafkaproto.struct_types import NullableStruct, StructType
from kafkaproto.wire_type import WireType

Json = Any
T = TypeVar("T")

OTHER_NAMES = {"RequestHeader": {"api_key": "requestApiKey", "api_version": "requestApiVersion"}}
"""Kafka's names of fields that are not the camel case of the Python names, as {class name: {Python name: Kafka name}}."""

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def wire_name(layout: StructType[Any], name: str) -> str:
    """Return Kafka's name of a field: ``throttleTimeMs`` for ``throttle_time_ms``.

    layout: the struct that has the field.
    """
    exception = OTHER_NAMES.get(layout.cls.__name__, {}).get(name)
    return exception or camel_case(name)


def camel_case(name: str) -> str:
    """Return a name in camel case: ``throttleTimeMs`` for ``throttle_time_ms``."""
    return re.sub("_([a-z0-9])", lambda letter: letter[1].upper(), name)


def wire_path(layout: StructType[Any], path: str) -> str:
    """Return a path in Kafka's names, without the message: ``topics[0].fetchOffset`` for ``FetchRequest.topics[0].fetch_offset``.

    layout: the type of the message.
    """
    first, *others = path.removeprefix(f"{layout.cls.__name__}.").split(".")
    return ".".join([wire_name(layout, first), *map(camel_case, others)])


def to_json(layout: Message[Any], obj: Any) -> dict[str, Json]:
    """Return a message as values for `json.dumps`.

    Raises EncodeError, as encoding does, if a field that does not exist in this version has a value other than its default: this value would be lost.
    layout: the type of the message in one version. obj: the message.
    """
    with layout.naming_versions():
        return _struct_to_json(layout, obj, layout.cls.__name__)


def _struct_to_json(layout: StructType[Any], obj: Any, path: str) -> dict[str, Json]:
    if not isinstance(obj, layout.cls):
        raise EncodeError(path, f"expected an object of class {layout.cls.__name__} (got {safe_repr(obj)})")
    for name in layout.absent:
        value = getattr(obj, name)
        if differs(value, layout.defaults[name]()):
            raise EncodeError(
                f"{path}.{name}",
                f"this version has no such field, so the value {safe_repr(value)} would be lost; use the default, or another version",
            )
    fields = list(layout.fields)
    tagged = layout.tags.fields if layout.tags else ()
    fields += [(f.name, f.type) for f in tagged if differs(getattr(obj, f.name), layout.defaults[f.name]())]
    return {wire_name(layout, name): value_to_json(kind, getattr(obj, name), f"{path}.{name}") for name, kind in fields}


def value_to_json(kind: WireType, value: Any, path: str) -> Json:
    """Return the value of a field as JSON. kind: the wire type of the field. path: its path, for error messages."""
    if value is None:
        return _checked_null(kind, path)
    match kind:
        case StructType():
            return _struct_to_json(kind, value, path)
        case NullableStruct():
            return _struct_to_json(kind.struct, value, path)
        case ArrayType():
            return [
                value_to_json(kind.item, item, f"{path}[{i}]")
                for i, item in enumerate(_checked(value, (list, tuple), "a list", path))
            ]
        case BytesType():
            return _base64(value, path)
        case StringType():
            return _checked(value, str, "a string", path)
    if kind is Uuid:
        return base64.urlsafe_b64encode(_checked(value, (bytes, bytearray), "a uuid", path)).decode().rstrip("=")
    if kind is Float64:
        value = _float(value, path)
        return (
            value
            if math.isfinite(value)
            else next(word for word, number in WORDS.items() if repr(number) == repr(value))
        )
    return value


def _base64(value: Any, path: str) -> str:
    try:
        return base64.b64encode(value).decode()
    except (TypeError, BufferError):
        raise EncodeError(path, f"expected bytes, which JSON contains as base64 (got {safe_repr(value)})") from None


def from_json(layout: Message[T], data: Json) -> T:
    """Return the message that JSON describes.

    Tagged fields may be missing. This function does not check whether a number fits its type; encoding does. Unlike Kafka, it rejects unknown names.
    Raises EncodeError, naming the field that is missing, unknown or of another type. layout: the type of the message in one version. data: the parsed
    JSON.
    """
    with layout.naming_versions():
        obj: T = _struct_from_json(layout, data, layout.cls.__name__)
    return obj


def _struct_from_json(layout: StructType[Any], data: Json, path: str) -> Any:
    if not isinstance(data, dict):
        raise EncodeError(path, f"expected a JSON object (got {safe_repr(data)})")
    left = dict(data)
    values = {}
    for name, kind in layout.fields:
        key = wire_name(layout, name)
        if key not in left:
            raise EncodeError(f"{path}.{key}", "the field is missing")
        values[name] = value_from_json(kind, left.pop(key), f"{path}.{key}")
    for field in layout.tags.fields if layout.tags else ():
        key = wire_name(layout, field.name)
        if key in left:
            values[field.name] = value_from_json(field.type, left.pop(key), f"{path}.{key}")
    for key in left:
        allowed = [name for name, _ in layout.fields] + [
            field.name for field in (layout.tags.fields if layout.tags else ())
        ]
        names = ", ".join(wire_name(layout, name) for name in allowed)
        raise EncodeError(
            f"{path}.{key}",
            f"unknown field; in the given version, {layout.cls.__name__} has only the fields {names}; remove the unknown field or correct its name",
        )
    return layout.cls(**values)


def value_from_json(kind: WireType, data: Json, path: str) -> Any:
    """Return the value of a field from its JSON form. kind: the wire type of the field. path: its path, for error messages."""
    if data is None:
        return _checked_null(kind, path)
    match kind:
        case StructType():
            return _struct_from_json(kind, data, path)
        case NullableStruct():
            return _struct_from_json(kind.struct, data, path)
        case ArrayType():
            items = _checked(data, list, "a list", path)
            return [value_from_json(kind.item, item, f"{path}[{i}]") for i, item in enumerate(items)]
        case StringType():
            return _checked(data, str, "a string", path)
        case BytesType():
            return _bytes(_checked(data, str, "base64", path), path)
    return _scalar(kind, data, path)


def _scalar(kind: WireType, data: Json, path: str) -> Any:
    if kind is Uuid:
        value = _bytes(_checked(data, str, "a uuid", path).translate(FROM_URL), path)
        if len(value) != 16:
            raise EncodeError(path, f"expected a uuid, which is 16 bytes in base64 (got {safe_repr(data)})")
        return value
    if kind is Bool:
        return _checked(data, bool, "true or false", path)
    if kind is Float64:
        if isinstance(data, str) and data in WORDS:
            return WORDS[data]
        return _float(_checked(data, (int, float), "a number", path), path)
    return _checked(data, int, "a whole number", path)


def _float(number: Any, path: str) -> float:
    try:
        return float(number)
    except (OverflowError, TypeError, ValueError):
        raise EncodeError(path, f"expected a number of at most 64 bits (got {safe_repr(number)})") from None


def _checked_null(kind: WireType, path: str) -> None:
    if not isinstance(kind, NullableStruct) and not (isinstance(kind, LengthPrefixed) and kind.nullable):
        raise EncodeError(path, "must not be null")


FROM_URL = str.maketrans("-_", "+/")


def _bytes(text: str, path: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EncodeError(path, f"expected base64 (got {safe_repr(text)})") from None


def _checked(data: Json, kind: type | tuple[type, ...], name: str, path: str) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise EncodeError(path, f"expected {name} (got {safe_repr(data)})")
    return data
