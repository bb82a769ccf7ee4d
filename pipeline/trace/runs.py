"""Lists the recordings (runs) in the files of a trace, and up to which position the Parquet tables already contain each run.

A file that cannot be read causes a message for the user (`Notice`), not an exception, so that the other files are used. This module does not depend
on the columns of rows, Spark or where tables are stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kafkaproto.pipeline.trace.place import Place, parse_place
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.trace.format import TraceError
from kafkaproto.trace.reading import Trace, files_of

TIMES = ("wall_ms", "at_ns", "clock_ms")
"""The fields of a trace file's header with the start time of the recording, by wall clock, monotonic clock and the broker's clock."""


class Notice(NamedTuple):
    """A message about a file for the user.

    run: name of the run (recording), empty if the file belongs to none. torn: True if the only problem is that the end of the file is missing, as
    after `kill -9` or while the file is written.
    """

    run: str
    text: str
    torn: bool


class Run(NamedTuple):
    """The files of one recording, which is either a trace or a packet capture.

    meta: header of the first file. sizes: bytes of each file when the run was listed. capture: whether the run is a packet capture. place: the
    position in the files up to which their entries are already in the folder of tables; None if the run must be read from the start.
    """

    name: str
    meta: dict[str, Any]
    files: tuple[str, ...]
    sizes: tuple[int, ...]
    capture: bool = False
    place: Place | None = None

    @property
    def start(self) -> tuple[int, int]:
        """Return (index of the file, byte position in that file) at which the new part of the run (recording) starts.

        The new part consists of the entries that the Parquet tables do not contain yet.
        """
        if self.place is None:
            return 0, 0
        return [Path(file).name for file in self.files].index(self.place.file), self.place.offset

    @property
    def old_bytes(self) -> int:
        """Return the number of bytes of the run (recording) whose entries are already in the Parquet tables."""
        number, offset = self.start
        return sum(self.sizes[:number]) + offset

    @property
    def new_bytes(self) -> int:
        return sum(self.sizes) - self.old_bytes


def runs_of(path: Path) -> tuple[list[Run], list[Notice]]:
    """Return the recordings (runs) of a trace, and messages for the user about files that cannot be used.

    path: a trace file, or a folder of them. Raises TraceError if there is no file. If there are files but none is usable, the first list is empty.
    """
    runs_by_name: dict[str, dict[str, tuple[str, dict[str, Any], int]]] = {}
    notices = []
    for file in files_of(path):
        try:
            trace = Trace(file)
            meta = trace.meta
            if not all(isinstance(meta.get(name, 0), int) for name in TIMES):
                raise TraceError(f"trace file {file}: the fields {', '.join(TIMES)} of its header must be integers")
            parts, header = runs_by_name.setdefault(trace.run, {}), json.dumps(meta, sort_keys=True)
            if header in parts:
                notices.append(
                    Notice("", f"{file} has the same header as {parts[header][0]}: it is a copy and is left out", False)
                )
            else:
                parts[header] = str(file), meta, file.stat().st_size
        except (TraceError, OSError) as error:
            notices.append(Notice("", str(error), False))
    runs = []
    for name, parts in runs_by_name.items():
        files, metas, sizes = zip(*parts.values(), strict=True)
        runs.append(Run(name, metas[0], files, sizes))
    return runs, notices


def resumable_place(run: Run, before: Mapping[str, int], text: str) -> Place | None:
    """Return the position (`Place`) from which reading of `run` can continue; None if the run (recording) must be read from the start.

    before: the files of the run when the Parquet tables were last updated, in order: maps the name of each file to its size in bytes at that time.
    text: the position that was saved with the tables, as JSON.
    """
    try:
        place = parse_place(text)
        Rows.from_carried(run.name, 0, 0, place.carried)
        names = [Path(file).name for file in run.files]
        *earlier_names, last = before
        path, size = Path(run.files[names.index(last)]), run.sizes[names.index(last)]
        same = names[: len(before)] == [*earlier_names, last] and all(
            size == before[name] for name, size in zip(earlier_names, run.sizes, strict=False)
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


def meta_text(run: Run) -> str:
    """Return the header fields that identify a recording, as JSON. Two runs with the same name are the same recording if these texts are equal."""
    return json.dumps([run.meta.get(key) for key in ("recorder", "cluster_id", "wall_ms", "at_ns")])
