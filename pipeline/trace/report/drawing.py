"""The style of the report's figures, and their conversion to SVG, in which colours are CSS variables of the page.

A figure therefore follows the light or dark mode of the page. This module does not depend on what a figure shows.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any, Literal

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

# matplotlib accepts only real colours: these stand for the CSS variables that replace them in the SVG.
INK, GRID, BAD, WARN = "#010203", "#010204", "#010205", "#010206"
SERIES = tuple(f"#0102{16 + i:02x}" for i in range(8))
_NAMES = {INK: "ink", GRID: "grid", BAD: "bad", WARN: "warn"} | {c: f"s{i + 1}" for i, c in enumerate(SERIES)}

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.color": INK,
    "hatch.linewidth": 0.5,
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 8,
}
WIDTH = 9.0
MAX_LABEL_LENGTH = 44


class Drawing:
    """A figure of the report: `with Drawing(name, height) as (axes, render)`, where `render()` returns the SVG.

    A figure has one or more panels, one above the other; `axes` are the axes of the top panel.

    - name: name of the figure.
    - height: height of the whole figure in inches.
    - panels: number of panels, with equal heights.
    - below: if it is not 0, the figure has two panels, and this is the lower panel's share of the height, below 1. Overrides `panels`.
    - heights: relative height of each panel. Overrides `panels` and `below`.
    """

    def __init__(
        self,
        name: str,
        height: float,
        *,
        panels: int = 1,
        below: float = 0,
        heights: Sequence[float] = (),
    ) -> None:
        self._name = name
        self._style = plt.rc_context(STYLE | {"svg.hashsalt": name})
        self._size = WIDTH, height
        self._heights = heights or ((1 - below, below) if below else (1.0,) * panels)

    def __enter__(self) -> tuple[Axes, Callable[[], str]]:
        self._style.__enter__()
        self._figure: Figure
        self._figure, axes = plt.subplots(
            len(self._heights), 1, figsize=self._size, squeeze=False, layout="constrained", height_ratios=self._heights
        )
        return axes[0][0], self._svg

    def __exit__(self, *failure: object) -> None:
        plt.close(self._figure)
        self._style.__exit__(None, None, None)

    def _svg(self) -> str:
        file = StringIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # the browser's fonts draw the text
            self._figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        text = file.getvalue()
        text = text[text.index("<svg") :]
        for colour, name in _NAMES.items():
            text = text.replace(colour, f"var(--{name})")
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        # The ids must be unique on the page.
        text = re.sub(r'\bid="', f'id="{self._name}-', text)
        text = re.sub(r"url\(#", f"url(#{self._name}-", text)
        text = re.sub(r'xlink:href="#', f'href="#{self._name}-', text)
        return text


def legend(axes: Axes, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Put a legend above the axes, where it covers nothing. handles, labels: the drawn object and the text of each legend entry."""
    axes.legend(handles, labels, loc="lower right", bbox_to_anchor=(1, 1), ncols=min(len(labels), 4), borderaxespad=0.2)


def over_time(
    name: str, series: Sequence[tuple[str, Sequence[float], Sequence[float]]], about: str, where: Literal["pre", "post"]
) -> str:
    """Draw values over the seconds of the trace as steps, one line for each of the first eight (label, seconds, values) in `series`.

    name: name of the figure. about: label of the axis of the values. where: "post" if a value is valid from its own second to
    that of the next value, "pre" if it is valid from the second of the previous value to its own. Returns the SVG as text.
    """
    with Drawing(name, 3.4) as (axes, render):
        for colour, (label, seconds, values) in zip(SERIES, series, strict=False):
            axes.step(seconds, values, where=where, color=colour, linewidth=1.4, label=short_label(label))
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: short_number(v)))
        axes.set(xlabel="seconds of the trace", ylabel=about)
        legend(axes, *axes.get_legend_handles_labels())
        return render()


def short_number(value: float) -> str:
    """Return a number with at most three significant digits and a suffix for its magnitude, such as 1.2k or 35M."""
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{unit}"
    return f"{value:.3g}"


def short_label(text: str | None, max_length: int = MAX_LABEL_LENGTH) -> str:
    """Return a text as one line, shortened to at most `max_length` characters and then escaped for matplotlib.

    "$" is escaped, because matplotlib would read the text after it as a formula. A leading "_" is escaped, because matplotlib can leave out legend
    entries that begin with it.
    """
    if not text:
        return "(none)" if text is None else "(empty)"
    text = "".join(c if c.isprintable() else "·" for c in text)
    text = text if len(text) <= max_length else f"{text[: max_length // 2]}…{text[-max_length // 2 + 1 :]}"
    return text.replace("$", r"\$").replace("_", "\u200b_", text.startswith("_"))
