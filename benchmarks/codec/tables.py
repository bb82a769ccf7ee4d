"""The tables of docs/benchmarks.md about the codec, made from measured times in seconds.

A table shows ratios (the time of another codec divided by the time of this codec), the minimum ratio, and whether the ratio reaches the minimum.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from benchmarks.codec.cases import (
    AS_BUFFERS,
    MIN_ENCODE_RATIO,
    MIN_PURE_MEDIAN_RATIO,
    MIN_PURE_RATIO,
    MIN_RECORDS_RATIOS,
    MessageCase,
    all_cases,
)
from benchmarks.report import section_text, write_section

Measured = dict[tuple[str, str], dict[str, list[float]]]
"""Maps (title of a benchmark case, kind of work) to the seconds per call of each codec, one value for each round."""

COMMAND = "make bench"
PURE = ("kafka-python", "aiokafka", "construct", "construct, compiled")
NATIVE = ("aiokafka (C)", "kio (Rust)")
MISSING = "-"


@dataclass
class Section:
    """One table of docs/benchmarks.md, with its title and text.

    key: identifies the section by the HTML comments around it, ``<!-- key -->`` and ``<!-- /key -->``. words: the text before the table. head: titles
    of the columns.
    """

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
    """The measured ratios of one benchmark case and kind of work: a row of a table in docs/benchmarks.md.

    title: title of the case. kind: kind of work, such as "decode". ratios: maps the name of each other codec to its time, divided by the time of this
    project's codec.
    """

    title: str
    kind: str
    ratios: dict[str, float]

    @property
    def fastest_pure(self) -> float | None:
        """Return the ratio of the fastest codec in pure Python; None if no codec in pure Python supports the case."""
        return min((self.ratios[name] for name in PURE if name in self.ratios), default=None)

    @property
    def required(self) -> dict[str, float]:
        """Return the minimum ratio of each other codec, by name. A ratio is the codec's time divided by the time of this project's codec.

        The key ``Python`` stands for the fastest codec in pure Python. A codec without a minimum ratio is left out.
        """
        case = all_cases()[self.title]
        required = {"Python": MIN_PURE_RATIO}
        if isinstance(case, MessageCase):
            native, least = "kio (Rust)", case.kio_decode if self.kind == "decode" else MIN_ENCODE_RATIO
        else:
            native, least = "aiokafka (C)", MIN_RECORDS_RATIOS[case.work]
        return required if least is None else {**required, native: least}

    def verdict(self) -> str:
        """Return the minimum ratios as text, such as "Python ≥ 1". A minimum that the measured ratio does not reach is marked as missed."""
        words = []
        for name, least in self.required.items():
            ratio = self.fastest_pure if name == "Python" else self.ratios.get(name)
            if ratio is not None:
                words.append(f"{name} {bound(ratio, least)}")
        return ", ".join(words)

    def row(self, codecs: list[str]) -> list[str]:
        kind = ", as buffers" if self.kind == AS_BUFFERS else ""
        ratios = [f"{self.ratios[name]:.2f}" if name in self.ratios else MISSING for name in codecs]
        return [self.title + kind, *ratios, self.verdict()]


def cells(measured: Measured) -> list[Cell]:
    """Return a `Cell` for each case and kind of work, with a ratio for each other codec.

    The ratio is computed in each round, as the codec's time divided by that of this project's codec. The result is the median over all rounds.
    measured: maps (title of a case, kind of work) to the seconds per call of each codec, one value for each round.
    """
    cell_list = []
    for (title, kind), seconds in measured.items():
        ours = seconds["ours"]
        ratios = {
            name: statistics.median(theirs / our for theirs, our in zip(values, ours, strict=True))
            for name, values in seconds.items()
            if name != "ours"
        }
        cell_list.append(Cell(title, kind, ratios))
    return cell_list


def sections(measured: Measured) -> list[Section]:
    all_cells = cells(measured)
    groups = {
        "decode": [cell for cell in all_cells if cell.kind == "decode"],
        "encode": [cell for cell in all_cells if cell.kind in ("encode", AS_BUFFERS)],
        "records": [cell for cell in all_cells if cell.kind in MIN_RECORDS_RATIOS],
    }
    return [summary(all_cells), *(section(key, group) for key, group in groups.items() if group)]


def summary(all_cells: list[Cell]) -> Section:
    """Return the section that summarises all benchmark cases.

    all_cells: the ratios of each case and kind of work. A ratio is the time of another codec divided by the time of this codec. The table has the
    median and the lowest of the ratios for the fastest codec in pure Python; ratios of encoding to buffers are left out. For each codec with native
    code (aiokafka in C, kio in Rust), the table says how many of its ratios reach the required minimum.
    """
    pure = [cell.fastest_pure for cell in all_cells if cell.fastest_pure is not None and cell.kind != AS_BUFFERS]
    median, least = statistics.median(pure), min(pure)
    rows = [
        ["against the fastest Python codec, median of all rows", f"{median:.2f}", bound(median, MIN_PURE_MEDIAN_RATIO)],
        ["against the fastest Python codec, lowest of all rows", f"{least:.2f}", bound(least, MIN_PURE_RATIO)],
    ]
    for name in NATIVE:
        judged = [cell for cell in all_cells if name in cell.required and name in cell.ratios]
        met = [cell for cell in judged if cell.ratios[name] >= cell.required[name]]
        if judged:
            goal = "all" if len(met) == len(judged) else "all **missed**"
            rows.append([f"{name}: rows that reach the goal", f"{len(met)} of {len(judged)}", goal])
    words = (
        "The time of another codec divided by the time of this one, for the same work on the same bytes: more than 1 means that this one is faster. "
        "Each case runs in a process of its own, in which all codecs alternate in rounds of 10 ms; the ratio is computed in each round, and the "
        "median of 28 rounds in four passes counts. The garbage collector is on. The results of the codecs are compared before anything is measured."
    )
    return Section("codec", "The codec against others", words, ["measurement", "value", "goal"], rows)


def bound(value: float, least: float) -> str:
    """Return the required ratio `least` as table text, with a mark if the measured ratio `value` does not reach it."""
    return f"≥ {least:g}" + ("" if value >= least else " **missed**")


WORDS = {
    "decode": (
        "The codec: decoding messages",
        "`Message.decode` of `bytes`. A records field is a slice here and a copy in most other codecs. construct and its compiled form decode "
        "the same layout, written in construct's own classes. A dash: the codec does not support the version.",
    ),
    "encode": (
        "The codec: encoding messages",
        "Into one buffer; *as buffers* encodes without a copy of the records (`splices`), compared with the same other functions. kio decodes in "
        "Rust and encodes in Python.",
    ),
    "records": (
        "The codec: record batches",
        "A batch of 1000 records of 100 bytes (10 of them the key); with *mixed sizes* no record is as long as the one before. aiokafka "
        "without its extension, and its C extension by itself. kio decodes all records at once, verifies the CRC and supports no compression. "
        "*Columns*: offsets, timestamps, keys and values in separate columns.",
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
    return Section(f"codec-{key}", title, words + summary, ["work", *present, "goal"], rows)


def cost_section(rows: list[tuple[str, float, float]]) -> Section:
    words = "The cost before the first message, in fresh processes. First use: import of the module and all four flat functions."
    listed = [
        [measurement, f"{ratio:.2f}", f"≤ {most:g}" + ("" if ratio <= most else " **missed**")]
        for measurement, ratio, most in rows
    ]
    return Section("codec-costs", "The codec: startup costs", words, ["measurement", "value", "goal"], listed)
