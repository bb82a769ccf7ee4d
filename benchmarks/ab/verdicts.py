"""The limits in a comparison of the working tree with another commit, and the table that says which measurements keep their limit."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

MOST_INSTRUCTIONS = 1.03
MOST_MEMORY = 1.03
LEAST_SPEED = 0.95
HEAD = ("row", "base", "now", "now/base", "limit", "verdict")
OK, MISSED = "ok", "MISSED"


class Result(NamedTuple):
    """The result of one measurement for the other commit (`base`) and the working tree (`now`): a row of the printed table.

    row: name of the measurement. base, now: the two results as text. ratio: now/base, None if it could not be measured. limit: the largest allowed
    ratio, or the smallest if `larger_is_better`. why: the reason for a missing ratio.
    """

    row: str
    base: str
    now: str
    ratio: float | None
    limit: float
    larger_is_better: bool = False
    why: str = ""

    @property
    def missed(self) -> bool:
        """Return True if the ratio is beyond its limit or could not be measured."""
        if self.ratio is None:
            return True
        return self.ratio < self.limit if self.larger_is_better else self.ratio > self.limit

    def cells(self) -> tuple[str, ...]:
        limit = f"{'≥' if self.larger_is_better else '≤'} {self.limit:g}"
        if self.ratio is None:
            return self.row, self.base, self.now, "-", limit, f"{MISSED}: {self.why}"
        return self.row, self.base, self.now, f"{self.ratio:.4f}", limit, MISSED if self.missed else OK


def at_most(row: str, base: float | None, now: float | None, limit: float, form: str, why: str = "") -> Result:
    """Return the `Result` of a measurement in which a smaller number is better. row: name of the measurement.

    base, now: the numbers of the other commit and of the working tree, None if not measured. limit: the largest allowed ratio now/base.
    form: format string for each number, such as "{:,.0f}". why: the reason for a missing number.
    """
    texts = ["-" if number is None else form.format(number) for number in (base, now)]
    ratio = now / base if base and now is not None else None
    return Result(row, texts[0], texts[1], ratio, limit, why=why)


def paired(row: str, base: Sequence[float], now: Sequence[float]) -> Result:
    """Return the `Result` of a measurement of speed. The ratio is the median of the ratios now/base of all rounds. row: name of the measurement.

    base, now: the speeds of the other commit and of the working tree, one number for each round. The two speeds of a round are measured one after the
    other, so that changes of the machine's speed hardly affect their ratio.
    """
    if len(base) != len(now) or not base:
        return Result(row, "-", "-", None, LEAST_SPEED, True, f"{len(base)} rounds of the base and {len(now)} of now")
    ratios = [mine / theirs for mine, theirs in zip(now, base, strict=True)]
    texts = [f"{statistics.median(numbers):,.1f}" for numbers in (base, now)]
    return Result(row, texts[0], texts[1], statistics.median(ratios), LEAST_SPEED, True)


def table(results: Sequence[Result]) -> str:
    """Return the results as text, a table with aligned columns."""
    lines = [HEAD, *(result.cells() for result in results)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, 5) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
