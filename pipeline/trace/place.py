"""The position in a recording (run) up to which the Parquet tables contain its entries. The next job continues from there.

A position (`Place`) is stored as JSON, and every part is validated: a folder of tables may come from another machine or another version of this
program. This module does not depend on Spark or where positions are stored.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, NamedTuple

from kafkaproto.pipeline.trace.schema import TABLES, ddl

FORM = 5
"""The version of the rows of the Parquet tables, and of the state with which a later job continues a recording (`Rows.carried`).

Increase this number when the rows or the state change. Tables with a lower number are then made again, so that all rows of a recording have one
version.
"""
FINGERPRINT = sha256(json.dumps([FORM, {table: ddl(table) for table in TABLES}]).encode()).hexdigest()
"""Identifies the row format of the Parquet tables that this version of the program makes.

If the tables of a run (recording) were written with another fingerprint, they are made again from the start of the run.
"""


class Place(NamedTuple):
    """A position in a trace: the Parquet tables contain every entry before it.

    file: name of the trace file. offset: byte position in that file. meta: header of the file. carried: the state that the rows of later entries need
    from the entries before the position, such as open fetch sessions and topic names, as `Rows.carried` returned it.
    """

    file: str
    offset: int
    meta: dict[str, Any]
    carried: dict[str, Any]

    def text(self) -> str:
        return json.dumps({"fingerprint": FINGERPRINT, **self._asdict()}, separators=(",", ":"))


def parse_place(text: str) -> Place:
    """Parse a position in a trace (`Place`) from the JSON that `Place.text` returned.

    Raises KeyError, TypeError or ValueError for other JSON, and for a position that was saved when the tables had another row format.
    """
    fields = json.loads(text)
    if fields.pop("fingerprint") != FINGERPRINT:
        raise ValueError(
            "the saved position, at which the tables continue in the trace, is for another format of the tables; "
            "build the tables again from the start of the trace"
        )
    return Place(**fields)
