"""The tables of rules and tests: `tests.rules` reads markers and reports each kind of fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import rules
from tests.rules import Proof, Rule, problems, proofs, unknown_citations, written

PAGE = """# F. Fetch

## F-7 The first batch
Text.

## D9b Static quotas
Text.

## W-9 For clients
No test: it tells clients what to do.
"""
MODULE = """
import pytest

pytestmark = [pytest.mark.timeout(9), {marker}]

@pytest.mark.rule("F-7", "D9b")
@pytest.mark.parametrize("x", [1])
async def test_one(x): ...

class TestGroup:
    pytestmark = pytest.mark.rule("F-7")

    def test_two(self): ...

@pytest.mark.spark
@pytest.mark.rule("D9b")
def test_three(): ...

def test_without_a_rule(): ...
"""
KNOWN = [Rule("F-7", "The first batch", False), Rule("D9b", "Static quotas", False), Rule("W-9", "For clients", True)]


def proven(*numbers: str, is_fast: bool = True) -> list[Proof]:
    return [Proof(number, "tests/test_x.py", "test_x", is_fast) for number in numbers]


def test_rule_numbers_and_titles_are_parsed_from_the_rules_page() -> None:
    assert rules.rules(PAGE) == KNOWN


@pytest.mark.parametrize(("marker", "is_fast"), [("pytest.mark.java", False), ("pytest.mark.clients", True)])
def test_check_of_rule_markers_reads_markers_of_functions_classes_and_modules(
    tmp_path: Path, marker: str, is_fast: bool
) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_x.py").write_text(MODULE.format(marker=marker))
    assert sorted(proofs(tmp_path, "tests")) == [
        Proof("D9b", "tests/test_x.py", "test_one", is_fast),
        Proof("D9b", "tests/test_x.py", "test_three", False),
        Proof("F-7", "tests/test_x.py", "test_one", is_fast),
        Proof("F-7", "tests/test_x.py", "test_two", is_fast),
    ]


@pytest.mark.parametrize(
    ("named", "fault"),
    [
        (proven("F-7"), "rule D9b has no test"),
        (proven("F-7") + proven("D9b", is_fast=False), "rule D9b has no test that `make test` runs"),
        (proven("F-7", "D9b", "F-99"), "names rule F-99, which docs/rules does not have"),
        (proven("F-7", "D9b", "W-9"), "rule W-9 has a test: remove its line"),
    ],
)
def test_check_of_rule_markers_reports_untested_rules_and_tests_of_unknown_rules(
    named: list[Proof], fault: str
) -> None:
    (line,) = problems({"fetch.md": PAGE}, named)
    assert fault in line


def test_rule_number_defined_on_two_pages_is_an_error() -> None:
    pages = {"fetch.md": PAGE, "other.md": "# X\n\n## F-7 Again\n"}
    assert problems(pages, proven("F-7", "D9b")) == ["docs/rules has rule F-7 2 times"]


def test_error_for_an_outdated_table_of_rules_contains_the_command_to_rewrite_it() -> None:
    named = proven("F-7", "D9b")
    current = written(PAGE, named)
    assert current.startswith(PAGE) and problems({"fetch.md": current}, named) == []
    assert written(current, named) == current
    (line,) = problems({"fetch.md": written(PAGE, named[:1])}, named)
    assert line == "docs/rules/fetch.md is not current: run python -m tests.rules --write"


def test_check_of_rule_numbers_reports_unknown_numbers_in_docstrings_and_comments(tmp_path: Path) -> None:
    module = tmp_path / "package" / "module.py"
    module.parent.mkdir()
    module.write_text(
        '"""The first batch (F-7, KIP-98)."""\n'
        'NUMBERS = "F-98"\n'
        '"""Quotas in UTF-8\n\n(D9b, F-99)."""\n'
        "COUNT = 1  # as in D99c\n"
    )
    expected = ["package/module.py:3 cites F-99", "package/module.py:6 cites D99c"]
    faults = unknown_citations(tmp_path, ["package"], {"F-7", "D9b"})
    assert [fault.partition(",")[0] for fault in faults] == expected
    assert unknown_citations(tmp_path, ["package"], {"F-7", "F-99", "D9b", "D99c"}) == []


def test_docstrings_and_comments_of_the_packages_cite_only_existing_rules() -> None:
    pages = [path.read_text() for path in rules.PAGES.glob("*.md") if path.name != "index.md"]
    numbers = {rule.number for page in pages for rule in rules.rules(page)}
    assert unknown_citations(rules.ROOT, rules.PACKAGES, numbers) == []


def test_gap_in_rule_numbers_is_an_error_unless_the_page_gives_a_reason() -> None:
    page = written("# SN. Scenarios\n\n## SN-1 First join\n\nText.\n\n- SN-2: SN-1 has it.\n", proven("SN-1"))
    assert page.count("SN-2") == 1, "a number without a rule is not in the generated table"
    assert problems({"sn.md": page}, proven("SN-1")) == []
    gap = page.replace("- SN-2: SN-1 has it.", "- SN-3: SN-1 has it.")
    expected = 'SN-2 has neither a rule nor a reason: add a rule, or a line "- SN-2: ..." at the end of its page'
    assert problems({"sn.md": gap}, proven("SN-1")) == [expected]
    twice = page.replace("- SN-2", "- SN-1")
    assert problems({"sn.md": twice}, proven("SN-1")) == ["SN-1 has a rule, and a line that says why it has none"]


@pytest.mark.parametrize(
    ("line", "has_reason"), [("not used", False), ("not used.", False), ("not used; W-1 has it.", True)]
)
def test_rule_number_listed_as_not_used_without_a_reason_is_an_error(line: str, has_reason: bool) -> None:
    page = written(f"# SN. Scenarios\n\n## SN-1 First join\n\nText.\n\n- SN-2: {line}\n", proven("SN-1"))
    fault = 'docs/rules/sn.md does not say why SN-2 is not used: write "- SN-2: not used; ..." with the reason'
    assert problems({"sn.md": page}, proven("SN-1")) == ([] if has_reason else [fault])
