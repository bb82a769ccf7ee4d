"""The runs of a trace: which files belong to one recording, and how far into them its tables reach.

Files that cannot be read are reported, not raised, so that the others are used. Must never know rows' columns, Spark, nor where tables are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kafkaproto.pipeline.trace.place import Place, place_of
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.trace.format import TraceError
from kafkaproto.trace.reading import Trace, files_of

TIMES = ("wall_ms", "at_ns", "clock_ms")
"""Of a header: when the recording began."""


class Told(NamedTuple):
    """torn: only the end of a file is missing, as after `kill -9` or while it is written. run: empty for a file of none."""

    run: str
    text: str
    torn: bool


class Run(NamedTuple):
    """The files of one recording. meta: the header of the first. sizes: bytes of each file when it was found. capture: it is one of packets.
    place: where it was left when its tables were made; None: all of it is new."""

    name: str
    meta: dict[str, Any]
    files: tuple[str, ...]
    sizes: tuple[int, ...]
    capture: bool = False
    place: Place | None = None

    @property
    def begins(self) -> tuple[int, int]:
        """Number of the file, and the byte in it, at which what is new begins."""
        if self.place is None:
            return 0, 0
        return [Path(file).name for file in self.files].index(self.place.file), self.place.offset

    @property
    def old_bytes(self) -> int:
        """How many bytes stand before that."""
        number, offset = self.begins
        return sum(self.sizes[:number]) + offset

    @property
    def new_bytes(self) -> int:
        return sum(self.sizes) - self.old_bytes


def runs_of(path: Path) -> tuple[list[Run], list[Told]]:
    """The runs of a trace, and what has to be said of files that are none. Raises TraceError where there is no file at all."""
    found: dict[str, dict[str, tuple[str, dict[str, Any], int]]] = {}
    told = []
    for file in files_of(path):
        try:
            trace = Trace(file)
            meta = trace.meta
            if not all(isinstance(meta.get(name, 0), int) for name in TIMES):
                raise TraceError(f"{file}: its header does not tell when it began")
            parts, header = found.setdefault(trace.run, {}), json.dumps(meta, sort_keys=True)
            if header in parts:
                told.append(Told("", f"{file} begins as {parts[header][0]} does: it is a copy, and is left out", False))
            else:
                parts[header] = str(file), meta, file.stat().st_size
        except (TraceError, OSError) as error:
            told.append(Told("", str(error), False))
    runs = []
    for name, parts in found.items():
        files, metas, sizes = zip(*parts.values(), strict=True)
        runs.append(Run(name, metas[0], files, sizes))
    return runs, told


def place_in(run: Run, before: Mapping[str, int], text: str) -> Place | None:
    """The place from which `run` can be gone on with; None where it has to be read from its beginning.

    before: the files of which its tables were made, in their order, with their sizes. text: of the place that was left.
    """
    try:
        place = place_of(text)
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


def meta_text(run: Run) -> str:
    """Tells whether two runs of one name are the same recording."""
    return json.dumps([run.meta.get(key) for key in ("recorder", "cluster_id", "wall_ms", "at_ns")])
