"""From measured seconds to the tables of BENCHMARKS.md: ratios, what is wanted of them, and whether they are."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from benchmarks.codec.cases import (
    AS_BUFFERS,
    ENCODE_WANTED,
    PURE_MEDIAN_WANTED,
    PURE_WANTED,
    RECORDS_WANTED,
    MessageCase,
    all_cases,
)
from benchmarks.report import section_text, write_section

Measured = dict[tuple[str, str], dict[str, list[float]]]
"""Title and kind of work, then codec, to the seconds of a call, round by round."""

COMMAND = "make bench"
PURE = ("kafka-python", "aiokafka", "construct", "construct, compiled")
NATIVE = ("aiokafka (C)", "kio (Rust)")
MISSING = "-"


@dataclass
class Section:
    """One table with its title and text."""

    key: str
    title: str
    words: str
    head: list[str]
    rows: list[list[str]]

    def text(self) -> str:
        return section_text(self.key, self.title, COMMAND, self.words, self.head, self.rows)

    def write(self) -> str:
        return write_section(self.key, self.title, COMMAND, self.words, self.head, self.rows)


@dataclass(frozen=True)
class Cell:
    """A row's ratios: how many times as long as ours each rival takes."""

    title: str
    kind: str
    ratios: dict[str, float]

    @property
    def fastest_pure(self) -> float | None:
        """Against the fastest codec that is Python."""
        return min((self.ratios[name] for name in PURE if name in self.ratios), default=None)

    @property
    def wanted(self) -> dict[str, float]:
        """Codec to the least ratio; ``Python`` is the fastest of those."""
        case = all_cases()[self.title]
        wanted = {"Python": PURE_WANTED}
        if isinstance(case, MessageCase):
            native, least = "kio (Rust)", case.kio_decode if self.kind == "decode" else ENCODE_WANTED
        else:
            native, least = "aiokafka (C)", RECORDS_WANTED[case.work]
        return wanted if least is None else {**wanted, native: least}

    def verdict(self) -> str:
        """What is wanted, and what was missed."""
        words = []
        for name, least in self.wanted.items():
            found = self.fastest_pure if name == "Python" else self.ratios.get(name)
            if found is not None:
                words.append(f"{name} {bound(found, least)}")
        return ", ".join(words)

    def row(self, codecs: list[str]) -> list[str]:
        kind = ", as buffers" if self.kind == AS_BUFFERS else ""
        ratios = [f"{self.ratios[name]:.2f}" if name in self.ratios else MISSING for name in codecs]
        return [self.title + kind, *ratios, self.verdict()]


def cells(found: Measured) -> list[Cell]:
    """The ratio of two codecs is taken in each round, where they were neighbours; the median counts."""
    made = []
    for (title, kind), seconds in found.items():
        ours = seconds["ours"]
        ratios = {
            name: statistics.median(theirs / our for theirs, our in zip(values, ours, strict=True))
            for name, values in seconds.items()
            if name != "ours"
        }
        made.append(Cell(title, kind, ratios))
    return made


def sections(found: Measured) -> list[Section]:
    made = cells(found)
    groups = {
        "decode": [cell for cell in made if cell.kind == "decode"],
        "encode": [cell for cell in made if cell.kind in ("encode", AS_BUFFERS)],
        "records": [cell for cell in made if cell.kind in RECORDS_WANTED],
    }
    return [summary(made), *(section(key, group) for key, group in groups.items() if group)]


def summary(made: list[Cell]) -> Section:
    """The cells of all tables together."""
    pure = [cell.fastest_pure for cell in made if cell.fastest_pure is not None and cell.kind != AS_BUFFERS]
    median, least = statistics.median(pure), min(pure)
    rows = [
        ["against the fastest Python codec, median of all cells", f"{median:.2f}", bound(median, PURE_MEDIAN_WANTED)],
        ["against the fastest Python codec, least of all cells", f"{least:.2f}", bound(least, PURE_WANTED)],
    ]
    for name in NATIVE:
        judged = [cell for cell in made if name in cell.wanted and name in cell.ratios]
        met = [cell for cell in judged if cell.ratios[name] >= cell.wanted[name]]
        if judged:
            rows.append([f"{name}: cells that have what is wanted", f"{len(met)} of {len(judged)}", "all"])
    words = (
        "How many times as long as ours another codec takes for the same work on the same bytes: more than 1, and we are faster. Each case "
        "has a process of its own, in which all codecs take turns in rounds of 10 ms; the ratio is taken in each round, the median of 28 "
        "rounds in four passes counts. The garbage collector is on. Before anything is measured the codecs' results are compared."
    )
    return Section("codec", "The codec against others", words, ["what", "ratio", "wanted"], rows)


def bound(found: float, least: float) -> str:
    """What is wanted, and whether it was missed."""
    return f"≥ {least:g}" + ("" if found >= least else " **missed**")


WORDS = {
    "decode": (
        "The codec: reading messages",
        "`Message.decode` of `bytes`. A records field is a slice for us and a copy for most others. construct and its compiled form read "
        "our layout, written in construct's own classes. A dash: the codec has no such version.",
    ),
    "encode": (
        "The codec: writing messages",
        "Into one buffer; *as buffers* is our way without a copy of the records (`splices`), against the same others. kio reads in Rust "
        "and writes in Python.",
    ),
    "records": (
        "The codec: record batches",
        "A batch of 1000 records of 100 bytes (10 of them the key); in *mixed sizes* no record is as long as the one before. aiokafka "
        "with its extension off, and its C code by itself. kio reads all records at once, verifies the checksum and knows no compression. "
        "*Columns*: offsets, timestamps, keys and values apart.",
    ),
}


def section(key: str, group: list[Cell]) -> Section:
    present = [name for name in (*PURE, *NATIVE) if any(name in cell.ratios for cell in group)]
    title, words = WORDS[key]
    pure = [cell.fastest_pure for cell in group if cell.fastest_pure is not None]
    summary = (
        f" Against the fastest Python codec of each row: median {statistics.median(pure):.2f}, least {min(pure):.2f}."
    )
    rows = [cell.row(present) for cell in group]
    return Section(f"codec-{key}", title, words + summary, ["work", *present, "wanted"], rows)


def cost_section(rows: list[tuple[str, float, float]]) -> Section:
    words = "Before the first message, in fresh processes. First use: the module's import and all four flat functions."
    listed = [
        [what, f"{ratio:.2f}", f"≤ {most:g}" + ("" if ratio <= most else " **missed**")] for what, ratio, most in rows
    ]
    return Section("codec-costs", "The codec: what it costs to begin", words, ["what", "ratio", "wanted"], listed)
