"""LONG.md: what the parts of the long run came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.long_run.parts import ROOT, Result

PAGE = ROOT / "LONG.md"
HEAD = """# The long run

Written by `make long` (`python -m tests.long_run`) from the results in `tests/long_run/results/`, one file for each part with its commit.
A part counts while `broker/` and `kafkaproto/` are unchanged since; `make long` does the parts that do not count, and says which they are.
"""


def page(names: Sequence[str], results: Mapping[str, Result]) -> str:
    """Return the page. names: of all parts, in their order."""
    return "\n".join([HEAD, *_lines(names, results)]) + "\n"


def _lines(names: Sequence[str], results: Mapping[str, Result]) -> Iterator[str]:
    there = [results[name] for name in names if name in results]
    held = [result for result in there if result.holds]
    commits = sorted({result.commit for result in there})
    yield f"{len(held)} of {len(names)} parts are done and hold, at {', '.join(commits) or 'no commit'}.\n"
    if len({tuple(sorted(result.trees.items())) for result in there}) > 1:
        yield "They were not all done with the same code: `make long` does the older ones again.\n"
    for name in names:
        result = results.get(name)
        if result is None:
            yield f"- {name}: not done."
            continue
        yield f"- {name}, {result.commit}, {result.date}, {result.seconds} s:"
        for finding in result.findings:
            yield (
                f"  - {finding.line.removesuffix('.')}." if finding.holds else f"  - **does not hold:** {finding.line}"
            )


def write_page(names: Sequence[str], results: Mapping[str, Result], path: Path = PAGE) -> None:
    """Write LONG.md."""
    path.write_text(page(names, results))
