"""Where a run was left, so that what is new of it is added to its tables.

A place is JSON, and every part of it is looked at: a folder of tables may come from somebody else, or from another version of this program.
Must never know Spark, nor where places are kept.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, NamedTuple

from kafkaproto.pipeline.trace.schema import TABLES, ddl

FORM = 3
"""Of `Rows.carried`, and of what `Rows` says of an entry: another number when one of them changes, so that no run is of two minds."""
FINGERPRINT = sha256(json.dumps([FORM, {table: ddl(table) for table in TABLES}]).encode()).hexdigest()
"""Of whoever makes rows. Who has another one reads a run from its beginning."""


class Place(NamedTuple):
    """file: the name of the one in which a run was left. offset: the byte behind its last whole entry. meta: its header. carried: what `Rows`
    knew there (`Rows.carried`)."""

    file: str
    offset: int
    meta: dict[str, Any]
    carried: dict[str, Any]

    def text(self) -> str:
        return json.dumps({"fingerprint": FINGERPRINT, **self._asdict()}, separators=(",", ":"))


def place_of(text: str) -> Place:
    """Read the text of a place. Raises KeyError, TypeError or ValueError for what is none of ours."""
    told = json.loads(text)
    if told.pop("fingerprint") != FINGERPRINT:
        raise ValueError("of another form")
    return Place(**told)
