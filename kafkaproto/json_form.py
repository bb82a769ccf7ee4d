"""Messages as JSON, with the names and forms of kafka-clients' generated ``JsonConverter`` classes.

Fields are in camel case and wire order; bytes, and records too, are base64; uuids are what Java's ``Uuid`` prints (base64 for
URLs, without padding). A tagged field is only there when it differs from its default. Unknown tagged fields have no JSON.
(Kafka leaves record bytes out when it writes, and reads them as we write them.) This module must never know an API.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any, TypeVar

from kafkaproto.arrays import ArrayType
from kafkaproto.defaults import differs
from kafkaproto.errors import EncodeError, shown
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, BytesType, Float64, LengthPrefixed, StringType, Uuid
from kafkaproto.struct_types import NullableStruct, StructType
from kafkaproto.wire_type import WireType

Json = Any
T = TypeVar("T")

OTHER_NAMES = {"RequestHeader": {"api_key": "requestApiKey", "api_version": "requestApiVersion"}}
"""Where our name of a field is not Kafka's in another spelling."""

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def wire_name(layout: StructType[Any], name: str) -> str:
    """``throttle_time_ms`` to ``throttleTimeMs``."""
    other = OTHER_NAMES.get(layout.cls.__name__, {}).get(name)
    return other or _camel_case(name)


def _camel_case(name: str) -> str:
    return re.sub("_([a-z0-9])", lambda letter: letter[1].upper(), name)


def wire_path(layout: StructType[Any], path: str) -> str:
    """``FetchRequest.topics[0].fetch_offset`` to ``topics[0].fetchOffset``."""
    first, *others = path.removeprefix(f"{layout.cls.__name__}.").split(".")
    return ".".join([wire_name(layout, first), *map(_camel_case, others)])


def to_json(layout: Message[Any], obj: Any) -> dict[str, Json]:
    """Return a message as what `json.dumps` takes. Raises EncodeError for what would be lost in this version, as encoding does."""
    with layout.naming_versions():
        return _struct_to_json(layout, obj, layout.cls.__name__)


def _struct_to_json(layout: StructType[Any], obj: Any, path: str) -> dict[str, Json]:
    if not isinstance(obj, layout.cls):
        raise EncodeError(path, f"{shown(obj)} is no {layout.cls.__name__}")
    for name in layout.absent:
        value = getattr(obj, name)
        if differs(value, layout.defaults[name]()):
            raise EncodeError(f"{path}.{name}", f"is no field there and would be lost: {shown(value)}")
    fields = list(layout.fields)
    tagged = layout.tags.fields if layout.tags else ()
    fields += [(f.name, f.type) for f in tagged if differs(getattr(obj, f.name), layout.defaults[f.name]())]
    return {wire_name(layout, name): value_to_json(kind, getattr(obj, name), f"{path}.{name}") for name, kind in fields}


def value_to_json(kind: WireType, value: Any, path: str) -> Json:
    """One value of a wire type as JSON."""
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
                for i, item in enumerate(_checked(value, (list, tuple), "list", path))
            ]
        case BytesType():
            return _base64(value, path)
        case StringType():
            return _checked(value, str, "string", path)
    if kind is Uuid:
        return base64.urlsafe_b64encode(_checked(value, (bytes, bytearray), "uuid", path)).decode().rstrip("=")
    if kind is Float64:
        value = _float(value, path)
        return value if math.isfinite(value) else next(word for word, one in WORDS.items() if repr(one) == repr(value))
    return value


def _base64(value: Any, path: str) -> str:
    try:
        return base64.b64encode(value).decode()
    except (TypeError, BufferError):
        raise EncodeError(path, f"{shown(value)} is not in memory, so it has no JSON") from None


def from_json(layout: Message[T], data: Json) -> T:
    """Return the message that JSON describes. Raises EncodeError, naming the field that is missing, unknown or of another type.

    Tagged fields may be missing. That numbers are in their range, encoding checks. Kafka ignores names that it does not
    know; here they are errors.
    """
    with layout.naming_versions():
        obj: T = _struct_from_json(layout, data, layout.cls.__name__)
    return obj


def _struct_from_json(layout: StructType[Any], data: Json, path: str) -> Any:
    if not isinstance(data, dict):
        raise EncodeError(path, f"{shown(data)} is no JSON object")
    left = dict(data)
    values = {}
    for name, kind in layout.fields:
        key = wire_name(layout, name)
        if key not in left:
            raise EncodeError(f"{path}.{key}", "is missing")
        values[name] = value_from_json(kind, left.pop(key), f"{path}.{key}")
    for field in layout.tags.fields if layout.tags else ():
        key = wire_name(layout, field.name)
        if key in left:
            values[field.name] = value_from_json(field.type, left.pop(key), f"{path}.{key}")
    for key in left:
        raise EncodeError(f"{path}.{key}", "is no field there")
    return layout.cls(**values)


def value_from_json(kind: WireType, data: Json, path: str) -> Any:
    """One value of a wire type out of JSON."""
    if data is None:
        return _checked_null(kind, path)
    match kind:
        case StructType():
            return _struct_from_json(kind, data, path)
        case NullableStruct():
            return _struct_from_json(kind.struct, data, path)
        case ArrayType():
            items = _checked(data, list, "list", path)
            return [value_from_json(kind.item, item, f"{path}[{i}]") for i, item in enumerate(items)]
        case StringType():
            return _checked(data, str, "string", path)
        case BytesType():
            return _bytes(_checked(data, str, "base64", path), path)
    return _scalar(kind, data, path)


def _scalar(kind: WireType, data: Json, path: str) -> Any:
    if kind is Uuid:
        value = _bytes(_checked(data, str, "uuid", path).translate(FROM_URL), path)
        if len(value) != 16:
            raise EncodeError(path, f"{shown(data)} is no uuid: that is 16 bytes in base64")
        return value
    if kind is Bool:
        return _checked(data, bool, "true or false", path)
    if kind is Float64:
        if isinstance(data, str) and data in WORDS:
            return WORDS[data]
        return _float(_checked(data, (int, float), "number", path), path)
    return _checked(data, int, "whole number", path)


def _float(number: Any, path: str) -> float:
    try:
        return float(number)
    except (OverflowError, TypeError, ValueError):
        raise EncodeError(path, f"{shown(number)} is no number of 64 bits") from None


def _checked_null(kind: WireType, path: str) -> None:
    if not isinstance(kind, NullableStruct) and not (isinstance(kind, LengthPrefixed) and kind.nullable):
        raise EncodeError(path, "may not be null")


FROM_URL = str.maketrans("-_", "+/")


def _bytes(text: str, path: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EncodeError(path, f"{shown(text)} is no base64") from None


def _checked(data: Json, kind: type | tuple[type, ...], name: str, path: str) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise EncodeError(path, f"{shown(data)} is no {name}")
    return data
