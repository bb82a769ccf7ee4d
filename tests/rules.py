"""RULES.md against the tests: each rule names the tests that prove it, and they exist.

A test proves rule F-7 when its name has the word F7: `test_F7_F8_the_privilege_passes_on`. The line `Tests:` under a rule is written
by this program and checked by it.

usage: python -m tests.rules [--write]      (make rules)
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "RULES.md"
_RULE = re.compile(r"^### ([A-Z])-?(\d+[a-z]?)\b", re.MULTILINE)
_WORD = re.compile(r"([A-Z])(\d+[a-z]?)\Z")
_TESTS_LINE = re.compile(r"^Tests: .*$", re.MULTILINE)
NONE = "Tests: none"
WITHOUT = "No test: "
"""A rule that cannot have one says why."""


def proofs(folder: Path = ROOT / "tests") -> dict[str, list[str]]:
    """Rule, as F7, to the tests that have it in their name, as `path::name`."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for word in node.name.split("_"):
                    if _WORD.match(word):
                        found[word].append(f"{path.relative_to(ROOT)}::{node.name}")
    return found


def sections(text: str) -> list[tuple[str, int, int]]:
    """(rule, start, end) of each rule's section in RULES.md."""
    starts = [(match[1] + match[2], match.start()) for match in _RULE.finditer(text)]
    others = [match.start() for match in re.finditer(r"^#{1,3} ", text, re.MULTILINE)]
    ends = [min([other for other in others if other > start], default=len(text)) for _, start in starts]
    return [(rule, start, end) for (rule, start), end in zip(starts, ends, strict=True)]


def tests_line(tests: list[str]) -> str:
    """Grouped by file, so that a rule with twenty tests stays readable."""
    if not tests:
        return NONE
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        path, name = test.split("::")
        by_file[path].append(name)
    return "Tests: " + "; ".join(
        f"{path}: {', '.join(dict.fromkeys(names))}" for path, names in sorted(by_file.items())
    )


def rewritten(text: str, found: dict[str, list[str]]) -> str:
    """RULES.md with every `Tests:` line as it should be."""
    parts, at = [], 0
    for rule, start, end in sections(text):
        body = _TESTS_LINE.sub("", text[start:end]).rstrip("\n")
        line = [] if WITHOUT in body and rule not in found else [tests_line(found.get(rule, [])), "\n\n"]
        parts += [text[at:start], body, "\n\n", *line]
        at = end
    parts.append(text[at:])
    return "".join(parts).rstrip("\n") + "\n"


def problems(text: str, found: dict[str, list[str]]) -> list[str]:
    """What is wrong, one line each."""
    rules = [rule for rule, _, _ in sections(text)]
    excused = {rule for rule, start, end in sections(text) if WITHOUT in text[start:end]}
    wrong = [f"{rule} stands twice in RULES.md" for rule in sorted({r for r in rules if rules.count(r) > 1})]
    wrong += [
        f"{rule} has no test: write one with {rule} in its name"
        for rule in rules
        if rule not in found and rule not in excused
    ]
    wrong += [f"{rule} has a test and a reason to have none" for rule in sorted(excused) if rule in found]
    wrong += [
        f"{tests[0]} names rule {rule}, which RULES.md does not have"
        for rule, tests in found.items()
        if rule not in rules
    ]
    if not wrong and rewritten(text, found) != text:
        wrong.append("the Tests lines of RULES.md are not current: run python -m tests.rules --write")
    return wrong


def main() -> int:
    found = proofs()
    text = PAGE.read_text()
    if "--write" in sys.argv[1:]:
        PAGE.write_text(rewritten(text, found))
        text = PAGE.read_text()
    wrong = problems(text, found)
    for line in wrong:
        sys.stderr.write(line + "\n")
    count = len(sections(text))
    sys.stdout.write(f"{count} rules, {sum(len(v) for v in found.values())} proofs, {len(wrong)} problems\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
