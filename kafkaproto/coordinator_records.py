"""Records of the coordinators' topics: ``__consumer_offsets``, ``__transaction_state``, ``__share_group_state``.

A key begins with an int16, the kind of the record; a value begins with an int16, its version. This module
does not depend on groups, transactions or brokers. Kafka class: ``CoordinatorRecordSerde``.
"""

from __future__ import annotations

import struct
from importlib import import_module

from kafkaproto.data import DATA, RECORDS
from kafkaproto.errors import DecodeError, UnsupportedVersion
from kafkaproto.structs import Whole

_NUMBER = struct.Struct(">h")

Buffer = bytes | bytearray | memoryview


def read_record(topic: str, key: Buffer, value: Buffer | None) -> tuple[Whole, Whole | None]:
    """Decode key and value of a record of a coordinator's topic. The returned value is None for a tombstone.

    Raises DecodeError for damaged bytes, UnsupportedVersion for an unknown kind or version (written by a newer Kafka;
    brokers skip such records), ValueError if `topic` is not a coordinator's topic.
    """
    if topic not in RECORDS:
        raise ValueError(
            f"topic {topic!r} contains no records of a coordinator; topics that contain them are {', '.join(RECORDS)}"
        )
    kind = _number(key, "key")
    if kind not in RECORDS[topic]:
        known_kinds = ", ".join(map(str, RECORDS[topic]))
        raise UnsupportedVersion(None, kind, known_kinds, name=f"a key of {topic}")
    key_name, value_name = RECORDS[topic][kind]
    return _read(key_name, kind, key), None if value is None else _read(value_name, _number(value, "value"), value)


def write_key(key: Whole, kind: int) -> bytes:
    """Return the bytes of a record's key, preceded by its kind, an int16.

    kind: the kind of the record, which is also the version in which the key is encoded. Raises UnsupportedVersion if the class of the key does not
    have this version, and EncodeError if a value of the key cannot be encoded.
    """
    encoded = key.encode(kind)  # encode first: this rejects unknown kinds
    return _NUMBER.pack(kind) + encoded


def write_value(value: Whole, version: int) -> bytes:
    """Return the bytes of a record's value, preceded by its version, an int16.

    Raises UnsupportedVersion if the class of the value does not have this version, and EncodeError if one of its fields cannot be encoded.
    """
    encoded = value.encode(version)
    return _NUMBER.pack(version) + encoded


def data_class(name: str) -> type[Whole]:
    """Return the class with this name in `kafkaproto.data`, such as ``OffsetCommitKey``. Raises KeyError for an unknown name.

    Each class describes a record's key or value, or the content of a bytes field in messages.
    """
    cls: type[Whole] = getattr(import_module(f"kafkaproto.data.{DATA[name].module}"), name)
    return cls


def _read(name: str, version: int, data: Buffer) -> Whole:
    return data_class(name).layout(version).decode_flat(memoryview(data), _NUMBER.size, len(data))[0]


def _number(data: Buffer, key_or_value: str) -> int:
    if len(data) < _NUMBER.size:
        raise DecodeError(
            key_or_value,
            0,
            f"the version takes the first {_NUMBER.size} bytes, but the {key_or_value} has only {len(data)}",
        )
    number: int = _NUMBER.unpack_from(data)[0]
    return number
