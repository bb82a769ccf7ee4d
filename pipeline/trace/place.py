"""The position in a recording (run) up to which its tables are complete. The next job continues from this position.

A position (`Place`) is stored as JSON, and every part is validated: a folder of tables may come from another machine or another version of this
program. This module does not depend on Spark or where positions are stored.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, NamedTuple

from kafkaproto.pipeline.trace.schema import TABLES, ddl

FORM = 5
"""The version of the table rows, and of the state that `Rows.carried` saves.

Increase it when either changes, so that no run (recording) mixes rows of different versions.
"""
FINGERPRINT = sha256(json.dumps([FORM, {table: ddl(table) for table in TABLES}]).encode()).hexdigest()
"""Identifies the row format. Tables written with another fingerprint are rebuilt from the start of the run (recording)."""


class Place(NamedTuple):
    """A position in a trace: the tables contain every entry before it.

    file: name of the trace file. offset: byte position in that file. meta: header of the file. carried: what the rows of later entries
    depend on, such as open fetch sessions and topic names, as `Rows.carried` returned it at that position.
    """

    file: str
    offset: int
    meta: dict[str, Any]
    carried: dict[str, Any]

    def text(self) -> str:
        return json.dumps({"fingerprint": FINGERPRINT, **self._asdict()}, separators=(",", ":"))


def parse_place(text: str) -> Place:
    """Parse the JSON of a position (`Place`). Raises KeyError, TypeError or ValueError if it is not a position of this version."""
    fields = json.loads(text)
    if fields.pop("fingerprint") != FINGERPRINT:
        raise ValueError(
            "the saved position in the trace was written with another row format, so the tables must be rebuilt"
        )
    return Place(**fields)
