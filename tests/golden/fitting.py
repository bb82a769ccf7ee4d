"""One request for all versions of an API: fields that a version lacks keep their defaults."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from kafkaproto.api import APIS, codec
from kafkaproto.arrays import ArrayType
from kafkaproto.message import Message, NullableStruct

KEYS = {info.name: int(key) for key, info in APIS.items()}


def fitted(request: Any, version: int) -> Any:
    """Return a copy of the request without the fields that `version` lacks."""
    key = KEYS[type(request).__name__.removesuffix("Request")]
    return _fitted(codec(key, version).request, request)


def _fitted(layout: Any, value: Any) -> Any:
    match layout:
        case ArrayType():
            return None if value is None else [_fitted(layout.item, item) for item in value]
        case NullableStruct():
            return None if value is None else _fitted(layout.struct, value)
        case Message():
            tagged = layout.tags.fields if layout.tags else ()
            kinds = {**dict(layout.fields), **{field.name: field.type for field in tagged}}
            field_values = {f.name: getattr(value, f.name) for f in fields(value) if f.name in kinds}
            return layout.cls(**{name: _fitted(kinds[name], item) for name, item in field_values.items()})
    return value
