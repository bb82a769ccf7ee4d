"""The mutation testing program for `broker/`: mutations, excluded code, and caught or surviving mutations."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mutations import results
from tests.mutations.__main__ import SEEDS, main, tried
from tests.mutations.judgements import JUDGEMENTS
from tests.mutations.runs import (
    ROOT,
    STAGES,
    Failure,
    Stage,
    apply,
    caught,
    checked_out,
    copied,
    edit_of,
    first_failed,
    is_package_loaded_from,
    run_pytest,
)
from tests.mutations.sites import Site, chosen, mutated, sites, sites_of


def mutations_of(text: str) -> list[tuple[str, str]]:
    """Return (code, replacement) of every site of a source text."""
    source = text.encode()
    return [(source[site.start : site.end].decode(), site.replacement) for site in sites_of("broker/x.py", source)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a < b", [("<", "<=")]),
        ("x = a <= b", [("<=", "<")]),
        ("x = a > b", [(">", ">=")]),
        ("x = a >= b", [(">=", ">")]),
        ("x = a == b", [("==", "!=")]),
        ("x = a != b", [("!=", "==")]),
        ("x = a is b", [("is", "is not")]),
        ("x = a is not b", [("is not", "is")]),
        ("x = a in b", [("in", "not in")]),
        ("x = a not  in b", [("not  in", "in")]),
        ("x = a < b <= c", [("<", "<="), ("<=", "<")]),
        ("x = (a)  # < or >\\\n".replace("\\", "") + "y = ((a) < (b))", [("<", "<=")]),
        ("x = (\n  a  # a < b, not a > b\n  > b)", [(">", ">=")]),
        ("x = a + b - c", [("+", "-"), ("-", "+")]),
        ("x += a", [("+", "-")]),
        ("x -= a", [("-", "+")]),
        ("x = 60_000", [("60_000", "60001")]),
        ("x = -1", [("1", "2")]),
        ("x = a and b and c", [("and", "or"), ("and", "or")]),
        ("x = a or b", [("or", "and")]),
        ("x = a if b else c", [("b", "not (b)")]),
        ("x = [a for a in b if not a.c]", [("not a.c", "a.c")]),
        ("x = True, False", [("True", "False"), ("False", "True")]),
        ("x = min(a, max(b, c))", [("min", "max"), ("max", "min")]),
        ("if a:\n  pass", [("a", "not (a)")]),
        ("if not a:\n  pass", [("not a", "a")]),
        (
            "if not (a or b):\n  pass",
            [("not (a or b)", "(a or b)"), ("or", "and")],
        ),
        ("def f(a=1):\n  return 2", [("1", "2"), ("2", "3")]),
        ("def f(self):\n  self.a = b", [("self.a = b", "pass")]),
        ("def f(self):\n  self.a: int = b", [("self.a: int = b", "pass")]),
        ("def f(self):\n  self.a[b] += c", [("self.a[b] += c", "pass"), ("+", "-")]),
        ("def f(self):\n  del self.a[b]", [("del self.a[b]", "pass")]),
        ("def f():\n  a.b(\n    c\n  )", [("a.b(\n    c\n  )", "pass")]),
        ("async def f():\n  await a()", [("await a()", "pass")]),
        ("def f():\n  for a in b:\n    continue", [("continue", "pass")]),
        ("def f():\n  if a:\n    return b\n  return c", [("a", "not (a)"), ("return b", "pass")]),
        ("x = 'ä', 1", [("1", "2")]),
    ],
)
def test_code_mutations_replace_operators_numbers_conditions_and_statements(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert mutations_of(text) == expected
    source = text.encode()
    for site in sites_of("broker/x.py", source):
        assert ast.dump(ast.parse(mutated(source, site))) != ast.dump(ast.parse(source))


@pytest.mark.parametrize(
    "text",
    [
        '"""A docstring of 2 lines."""',
        "__slots__ = ('a', 1)",
        "__all__ = ['a', *b[1]]",
        "x: Literal[1]",
        "def f(a: Literal[1]) -> Literal[2]:\n  a = b",
        "@register(1, 2, min(3, 4))\nclass A(B[1], metaclass=c(2)):\n  pass",
        "def __repr__(self):\n  return self.a + 1",
        "def f():\n  raise A(b + 1)",
        "def f():\n  assert a < 1",
        "def f():\n  logger.info('a', b + 1)",
        "parser.add_argument('--port', default=9092)",
        "if TYPE_CHECKING:\n  x = 1",
        "if typing.TYPE_CHECKING:\n  x = 1",
        "x = f'{a + 1}'",
        "x = a + 'b' + c",
        "x = [a] + b",
        "x = zip(a, b, strict=True)",
        "def f():\n  a = b",
        "def f():\n  return a",
        "class A:\n  a.b = c\n  d()",
    ],
)
def test_mutation_testing_does_not_mutate_docstrings_log_calls_or_annotations(text: str) -> None:
    assert mutations_of(text) == []


def test_code_mutation_changes_only_the_mutated_expression_in_the_source() -> None:
    source = "# ä\ndef f(a):\n    return min(a, 3)  # kept\n".encode()
    texts = [mutated(source, site).decode() for site in sites_of("broker/x.py", source)]
    assert texts == [source.decode().replace("min", "max"), source.decode().replace("3", "4")]


def test_code_mutation_that_does_not_compile_raises_a_syntax_error() -> None:
    with pytest.raises(SyntaxError):
        mutated(b"x = 1\n", Site("broker/x.py", 1, 4, 5, "("))


# ---- seeds ---------------------------------------------------------------------------------------------------------------


def test_mutation_testing_selects_thirty_different_mutations_for_thirty_seeds() -> None:
    places = sites(ROOT)
    picked = [chosen(places, seed) for seed in SEEDS]
    assert len(set(picked)) == 30
    again = sites(ROOT)
    assert [chosen(again, seed) for seed in SEEDS] == picked
    for site in picked:
        assert not site.path.startswith(("broker/testing/", "broker/proxy/"))
        source = (ROOT / site.path).read_bytes()
        assert ast.dump(ast.parse(mutated(source, site))) != ast.dump(ast.parse(source))


# ---- trees ---------------------------------------------------------------------------------------------------------------

Check = Callable[[Path], str]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with one module, which has one site, and a test for each stage."""
    root = tmp_path / "tree"
    (root / "broker").mkdir(parents=True)
    (root / "broker/x.py").write_text("def is_big(a):\n    return a > LIMIT\n\n\nLIMIT = int('3')\n")
    for name in ("golden", "broker", "conformance", "other"):
        (root / "tests" / name).mkdir(parents=True)
        (root / "tests" / name / f"test_{name}.py").write_text("def test_it():\n    pass\n")
    (root / "kafkaproto").mkdir()
    (root / "kafkaproto/broker").symlink_to("../broker")
    return root


def boundary(tree: Path) -> str:
    scope: dict[str, Callable[[int], bool]] = {}
    exec((tree / "broker/x.py").read_text(), scope)
    return "tests/a/test_a.py::test_the_limit_is_not_big" if scope["is_big"](3) else ""


def far_away(tree: Path) -> str:
    scope: dict[str, Callable[[int], bool]] = {}
    exec((tree / "broker/x.py").read_text(), scope)
    return "" if scope["is_big"](9) else "tests/a/test_a.py::test_nine_is_big"


def stub(check: Check) -> Callable[[Path, Stage, tuple[str, ...]], Failure | None]:
    """Return a runner in whose stage "broker" one test fails if `check` says so."""

    def run(tree: Path, stage: Stage, left_out: tuple[str, ...]) -> Failure | None:
        failed = check(tree) if stage.name == "broker" else ""
        return Failure(stage.name, failed) if failed and failed not in left_out else None

    return run


def test_mutation_result_contains_the_first_failing_test_or_the_word_survived(tree: Path) -> None:
    source = (tree / "broker/x.py").read_bytes()
    result = tried(tree, 1, stub(boundary))
    assert result == {
        "place": "broker/x.py:2",
        "before": "return a > LIMIT",
        "after": "return a >= LIMIT",
        "stage": "broker",
        "test": "tests/a/test_a.py::test_the_limit_is_not_big",
    }
    assert tried(tree, 1, stub(far_away)) == {**result, "stage": results.SURVIVED, "test": ""}
    assert (tree / "broker/x.py").read_bytes() == source


def test_mutation_run_returns_the_failing_test_or_none_if_all_tests_pass(tree: Path) -> None:
    assert caught(tree, stub(boundary)) is None
    [site] = sites(tree)
    apply(site, tree)
    assert caught(tree, stub(boundary)) == Failure("broker", "tests/a/test_a.py::test_the_limit_is_not_big")


def test_mutation_survives_if_the_only_failing_test_passes_when_repeated(tree: Path) -> None:
    runs: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []

    def run(tree: Path, stage: Stage, left_out: tuple[str, ...]) -> Failure | None:
        runs.append((stage.name, stage.paths, left_out))
        return Failure(stage.name, "tests/a.py::test_b") if len(runs) == 1 else None

    assert caught(tree, run) is None
    first, *others = STAGES
    again = [(first.name, ("tests/a.py::test_b",), ()), (first.name, first.paths, ("tests/a.py::test_b",))]
    assert runs == [(first.name, first.paths, ()), *again, *((stage.name, stage.paths, ()) for stage in others)]


def test_copy_of_a_source_tree_for_mutations_keeps_symlinks_and_excludes_git_data(tree: Path) -> None:
    (tree / ".venv").mkdir()
    (tree / ".git").mkdir()
    with copied(tree) as copy:
        assert (copy / "kafkaproto/broker").readlink() == Path("../broker")
        assert (copy / ".venv").is_symlink()
        assert not (copy / ".git").exists()
        (copy / "kafkaproto/broker/x.py").write_text("")
    assert (tree / "broker/x.py").read_text()


def test_programs_in_a_mutated_source_tree_import_the_broker_of_that_tree(tree: Path) -> None:
    (tree / "kafkaproto/__init__.py").touch()
    (tree / "broker/__init__.py").touch()
    assert is_package_loaded_from(tree)
    (tree / "broker/__init__.py").unlink()
    (tree / "kafkaproto/broker").unlink()
    (tree.parent / "installed").mkdir()
    (tree.parent / "installed/__init__.py").touch()
    (tree / "kafkaproto/broker").symlink_to("../../installed")
    assert not is_package_loaded_from(tree)


def test_mutation_testing_of_a_git_revision_uses_its_committed_files(tree: Path) -> None:
    (tree / "pipeline").mkdir()
    (tree / "pipeline/y.py").touch()
    for command in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "commit", "-qm", "a"),
    ):
        subprocess.run(["git", *command], cwd=tree, check=True)
    (tree / "broker/x.py").write_text("changed")
    with checked_out("HEAD", tree) as revision:
        assert (revision / "kafkaproto/broker/x.py").read_text().startswith("def is_big")
        assert (revision / "kafkaproto/broker").is_symlink()


# ---- runs of pytest --------------------------------------------------------------------------------------------------------

GOLDEN = Stage("golden", ("tests/golden",), 30)


def test_pytest_run_of_mutation_testing_returns_the_first_test_that_fails(tree: Path) -> None:
    assert run_pytest(tree, GOLDEN, ()) is None
    module = tree / "tests/golden/test_golden.py"
    module.write_text("def test_a():\n    pass\ndef test_b():\n    assert 0\ndef test_c():\n    assert 0\n")
    assert run_pytest(tree, GOLDEN, ()) == Failure("golden", "tests/golden/test_golden.py::test_b")
    left_out = ("tests/golden/test_golden.py::test_b",)
    assert run_pytest(tree, GOLDEN, left_out) == Failure("golden", "tests/golden/test_golden.py::test_c")


def test_mutation_testing_reports_a_module_that_cannot_be_imported(tree: Path) -> None:
    (tree / "tests/golden/test_golden.py").write_text("import this_does_not_exist\n")
    assert run_pytest(tree, GOLDEN, ()) == Failure("golden", "tests/golden/test_golden.py")


def test_mutation_testing_returns_a_failure_if_a_test_run_exceeds_its_time_limit(tree: Path) -> None:
    (tree / "tests/golden/test_golden.py").write_text("while True:\n    pass\n")
    assert run_pytest(tree, Stage("golden", ("tests/golden",), 1), ()) == Failure("golden", "no end within 1 s")


def test_mutation_testing_raises_an_error_if_the_golden_tests_are_missing(tree: Path) -> None:
    (tree / "tests/golden/test_golden.py").unlink()
    with pytest.raises(LookupError, match="stage golden has no tests in"):
        run_pytest(tree, GOLDEN, ())


def test_mutation_testing_parses_failing_test_names_from_pytest_output() -> None:
    output = "...\nFAILED tests/a/test_b.py::test_c[x y] - AssertionError: 1 - 2\nERROR tests/d.py\n"
    assert first_failed(output) == "tests/a/test_b.py::test_c[x y]"
    assert first_failed("ERROR tests/d.py - NameError\n") == "tests/d.py"
    assert first_failed("Killed\n") == ""


def test_last_stage_of_mutation_testing_runs_no_test_folder_of_an_earlier_stage() -> None:
    *named, rest = STAGES
    ignored = {path.removeprefix("--ignore=") for path in rest.paths[1:]}
    assert ignored == {path for stage in named for path in stage.paths} | {"tests/mutations"}
    assert [path for path in ignored if not (ROOT / path).is_dir()] == []


# ---- results -------------------------------------------------------------------------------------------------------------


def test_code_mutation_in_a_long_line_is_shown_with_shortened_context() -> None:
    source = f"{'a' * 70} = b + {'c' * 70}\n".encode()
    [site] = sites_of("broker/x.py", source)
    assert edit_of(source, site) == (f"…{'a' * 45} = b + {'c' * 49}…", f"…{'a' * 45} = b - {'c' * 49}…")


def test_text_of_a_mutation_joins_a_statement_of_several_lines_into_a_single_line() -> None:
    source = b"def f():\n    a(\n        b\n    )  # c\n"
    [site] = sites_of("broker/x.py", source)
    assert edit_of(source, site) == ("a( b )  # c", "pass  # c")


def test_mutation_testing_page_equals_stored_results_and_explains_each_survivor() -> None:
    columns = results.load()
    assert (results.FOLDER / "RESULTS.md").read_text() == results.page(columns)
    survivors = {
        results.key_of(result)
        for column in columns.values()
        for result in column["seeds"].values()
        if result["stage"] == results.SURVIVED
    }
    assert survivors == JUDGEMENTS.keys()


def test_mutation_testing_page_shows_results_of_two_git_revisions_in_two_columns(tmp_path: Path) -> None:
    [site] = sites_of("broker/x.py", b"x = a | b < c\n")
    edit = edit_of(b"x = a | b < c\n", site)
    failed = results.result_of(site, edit, Failure("golden", "tests/a.py::test_b"))
    survived = results.result_of(site, edit, None)
    columns: dict[str, results.Column] = {
        "before": {"revision": "abc", "command": "the command", "sites": 1234, "seeds": {"1": failed, "10": failed}},
        "after": {"revision": "def", "command": "another", "sites": 2, "seeds": {"2": survived, "1": failed}},
    }
    results.save(columns, tmp_path)
    assert results.load(tmp_path) == columns
    text = (tmp_path / "RESULTS.md").read_text()
    assert "|  | before | after |\n| --- | --- | --- |\n| revision | `abc` | `def` |" in text
    assert "| **caught** | **2 of 2** | **1 of 2** |\n| by golden | 2 | 1 |\n" in text
    assert "| survived | 0 | 1 |" in text
    row = "| 1 | broker/x.py:1 | `x = a \\| b < c` | `x = a \\| b <= c` | golden: `tests/a.py::test_b` |"
    assert text.index("## Before") < text.index(row) < text.index("## After")
    assert "| 2 | broker/x.py:1 | not judged yet |" in text


def test_mutation_testing_with_option_column_but_no_option_rev_exits_with_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--column", "after"])
    assert "--column after needs --rev" in capsys.readouterr().err


def test_mutation_testing_with_option_list_prints_the_mutation_of_each_seed(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--tree", str(tree), "--list", "--seeds", "4-5,9"]) == 0
    line = "broker/x.py:2 | return a > LIMIT | return a >= LIMIT\n"
    assert capsys.readouterr().out == f"4 {line}5 {line}9 {line}"
