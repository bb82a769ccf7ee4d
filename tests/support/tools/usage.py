"""Recognition of usage errors. A tool that rejects its own arguments prints the same for every cluster, and so proves nothing about a broker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tests.support.tools.steps import Step

_USAGE_ERROR = re.compile(
    r"""
    \busage:\s                                    # argparse4j, and tools that read their arguments themselves
    | ^(?:error:\s)?Option\b.*\s{2}Description\s*$  # the head of the list of options that joptsimple prints
    | \bis\ not\ a\ recognized\ option\b
    | \bOption\ .+\ requires\ an\ argument\b
    | \bFound\ multiple\ arguments\ for\ option\b
    | \bCannot\ parse\ argument\b
    | \bare\ unavailable\ given\ other\ options\b
    | \bMissing\ required\ (?:argument|option)
    | \bOption\ .+\ can't\ be\ used\ with\b
    | \bCommand\ must\ include\b
    """,
    re.VERBOSE | re.IGNORECASE,
)


def usage_error(lines: Iterable[str]) -> str | None:
    """Return the first line of a tool's output that shows that the tool rejected its arguments, or None if there is no such line."""
    return next((line for line in lines if _USAGE_ERROR.search(line)), None)


def misused(played: Sequence[tuple[Step, Sequence[str]]]) -> list[str]:
    """Return a text for each step whose tool rejected its arguments unexpectedly, or accepted arguments that it must reject.

    played: each step with the lines of its output.
    """
    texts = []
    for step, lines in played:
        rejected = usage_error(lines)
        if rejected is not None and not step.usage_error:
            fix = "correct the arguments, or set usage_error=True"
            texts.append(f"{step.verb}: {step.arguments}\nthe tool rejects its arguments; {fix}: {rejected}")
        elif rejected is None and step.usage_error:
            texts.append(f"{step.verb}: {step.arguments}\nthe tool accepts its arguments; remove usage_error=True")
    return texts
