"""Records of the topics that coordinators keep: ``__consumer_offsets``, ``__transaction_state``, ``__share_group_state``.

A key begins with an int16 that says which kind of record it is, a value with an int16 that is its version. This module
must never know groups, transactions or brokers. Twin: ``CoordinatorRecordSerde``.
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
    """Key and value of a record of a coordinator's topic; None for the value of a tombstone.

    Raises DecodeError for damaged bytes, UnsupportedVersion for a kind or version that is not known (a newer Kafka's:
    brokers skip such records), ValueError for another topic.
    """
    if topic not in RECORDS:
        raise ValueError(f"{topic!r} is no topic of a coordinator; those are {', '.join(RECORDS)}")
    kind = _number(key, "key")
    if kind not in RECORDS[topic]:
        known = ", ".join(map(str, RECORDS[topic]))
        raise UnsupportedVersion(None, kind, known, name=f"a key of {topic}")
    key_name, value_name = RECORDS[topic][kind]
    return _read(key_name, kind, key), None if value is None else _read(value_name, _number(value, "value"), value)


def write_key(key: Whole, kind: int) -> bytes:
    """The bytes of a key, its kind in front. Raises EncodeError, UnsupportedVersion."""
    encoded = key.encode(kind)  # first, for it knows the kinds that there are
    return _NUMBER.pack(kind) + encoded


def write_value(value: Whole, version: int) -> bytes:
    """The bytes of a value, its version in front. Raises EncodeError, UnsupportedVersion."""
    encoded = value.encode(version)
    return _NUMBER.pack(version) + encoded


def data_class(name: str) -> type[Whole]:
    """The class of what travels inside messages and records, by its name. KeyError for names that `DATA` has not."""
    found: type[Whole] = getattr(import_module(f"kafkaproto.data.{DATA[name].module}"), name)
    return found


def _read(name: str, version: int, data: Buffer) -> Whole:
    return data_class(name).layout(version).decode_flat(memoryview(data), _NUMBER.size, len(data))[0]


def _number(data: Buffer, part: str) -> int:
    if len(data) < _NUMBER.size:
        raise DecodeError(part, 0, f"needs 2 bytes for the number in front, {len(data)} are left")
    number: int = _NUMBER.unpack_from(data)[0]
    return number
