"""Where a run was left, so that what is new of it is added to its tables; and whether it can be gone on from there.

A place is JSON, and every part of it is looked at: a folder of tables may come from somebody else, or from another version of this program.
Must never know Spark, nor where places are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from kafkaproto.trace.format import Trace, TraceError

if TYPE_CHECKING:
    from kafkaproto.pipeline.trace.reading import Run

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


def place_in(run: Run, before: Mapping[str, int], text: str) -> Place | None:
    """The place from which `run` can be gone on with; None where it has to be read from its beginning.

    before: the files of which its tables were made, in their order, with their sizes. text: of the place that was left.
    """
    try:
        place = _place(text)
        Rows.carrying(run.name, 0, 0, place.carried)
        names = [Path(file).name for file in run.files]
        *done, last = before
        path, size = Path(run.files[names.index(last)]), run.sizes[names.index(last)]
        same = names[: len(before)] == [*done, last] and all(
            size == before[name] for name, size in zip(done, run.sizes, strict=False)
        )
        if (
            same
            and place.file == last
            and type(place.offset) is int
            and 0 < place.offset <= size
            and Trace(path).meta == place.meta
        ):
            return place
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, TraceError, OSError):
        pass
    return None


def _place(text: str) -> Place:
    """Raises KeyError, TypeError or ValueError for what is none of ours."""
    told = json.loads(text)
    if told.pop("fingerprint") != FINGERPRINT:
        raise ValueError("of another form")
    return Place(**told)
