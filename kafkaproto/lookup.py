"""Helpers of the codec's commands: find definitions by name, and read input files. This module does not depend on the broker.

A definition describes the messages of an API, the key or value of a record, or the content of a bytes field in a message, such as
ConsumerProtocolAssignment in a SyncGroup request.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from kafkaproto.api import APIS, Codec, codec
from kafkaproto.arguments import did_you_mean
from kafkaproto.coordinator_records import data_class
from kafkaproto.data import DATA
from kafkaproto.message import Message


class CommandError(ValueError):
    """Raised if a command of `kafkaproto` cannot be executed. Its message is the line to print on stderr."""


RECORD_BATCH = "RecordBatch"
"""The name that selects record batches and message sets in the option `--data` of the commands. The codec has no schema for them."""


def find(api: str, version: int) -> Codec:
    """Return the codec of one version of an API. api: the name or key of the API: ``fetch``, ``Fetch``, ``list-offsets``, ``1``.

    Raises CommandError for an unknown API, and UnsupportedVersion for an unknown version.
    """
    return codec(find_key(api), version)


def find_key(api: str) -> int:
    """Return the key of an API, given by name or key as text. Raises CommandError, with the most similar name, for an unknown API."""
    for key, info in APIS.items():
        if plain(api) in (info.name.lower(), str(int(key))):
            return int(key)
    names = [info.name for info in APIS.values()]
    raise CommandError(f"no API is called {api!r}{did_you_mean(plain(api), names) or '; `kafkaproto apis` lists them'}")


def find_data(name: str, version: int) -> tuple[str, Message[Any]]:
    """Return (exact name, wire layout of one version) of a record's key or value, or of the content of a bytes field in messages.

    name: the name as the user wrote it, such as "offset-commit-key" for OffsetCommitKey. Raises CommandError for an unknown name, and
    UnsupportedVersion for an unknown version.
    """
    exact_name = find_data_name(name)
    return exact_name, data_class(exact_name).layout(version)


def find_data_name(name: str) -> str:
    """Return the exact name of a record's key or value, or of the content of a bytes field in messages, such as "OffsetCommitKey".

    name: as the user wrote it, in any case and with or without hyphens. Raises CommandError for an unknown name, with the most similar name, and for
    record batches, which have no schema.
    """
    for info in DATA.values():
        if plain(name) == info.name.lower():
            return info.name
    if plain(name) == RECORD_BATCH.lower():
        raise CommandError(
            f"{name} can be decoded, but not encoded; to decode it, use kafkaproto decode --data record-batch --file FILE"
        )
    hint = did_you_mean(plain(name), [*DATA, RECORD_BATCH]) or "; `kafkaproto apis --data` lists the known ones"
    raise CommandError(f"no data structure is called {name!r}{hint}")


def is_data(name: str) -> bool:
    """Return whether `name` names a record's key or value, or the content of a bytes field in messages, such as "OffsetCommitKey".

    Case, hyphens, underscores and spaces do not matter.
    """
    return plain(name) in {exact_name.lower() for exact_name in DATA}


def plain(name: str) -> str:
    """Return a name in lower case, without hyphens, underscores and spaces."""
    return re.sub("[-_ ]", "", name).lower()


def read_input(file: Path | None) -> bytes:
    """Return the content of a file, or of standard input if `file` is None. Raises CommandError if the file cannot be read."""
    try:
        return file.read_bytes() if file else sys.stdin.buffer.read()
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from None
