"""The import graph has no cycle, including imports inside functions and under `TYPE_CHECKING`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "kafkaproto"
"""`kafkaproto/broker` and `kafkaproto/pipeline` are links to the folders beside it, so this package holds all three."""


def graph_of(package: str) -> grimp.ImportGraph:
    """Build the import graph of a package from its source text, so that imports that do not run are included, too."""
    return grimp.build_graph(package, exclude_type_checking_imports=False, cache_dir=None)


def cycles(graph: grimp.ImportGraph) -> list[tuple[str, ...]]:
    """Return for each import that is part of a cycle the shortest cycle through it, each cycle once and sorted.

    A cycle is its modules in order of import, from the first by name: the last imports the first.
    """
    all_cycles = set()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            way_back = shortest_path(graph, imported, importer)
            if way_back is not None:
                first = way_back.index(min(way_back))
                all_cycles.add((*way_back[first:], *way_back[:first]))
    return sorted(all_cycles)


def shortest_path(graph: grimp.ImportGraph, start: str, end: str) -> list[str] | None:
    """Return the modules of a shortest chain of imports, both ends included. Among equals the first by name wins."""
    predecessors = {start: ""}
    reached = [start]
    for module in reached:
        if module == end:
            path = [module]
            while predecessors[path[-1]]:
                path.append(predecessors[path[-1]])
            return path[::-1]
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            if imported not in predecessors:
                predecessors[imported] = module
                reached.append(imported)
    return None


def report(graph: grimp.ImportGraph) -> str:
    """Return the name of each cycle with the line of each of its imports, or an empty text if there is none."""
    import_cycles = cycles(graph)
    lines = [f"{len(import_cycles)} import cycles:"] if import_cycles else []
    for cycle in import_cycles:
        lines += ["", " -> ".join((*cycle, cycle[0])), *steps(graph, cycle)]
    return "\n".join(lines)


def steps(graph: grimp.ImportGraph, cycle: tuple[str, ...]) -> Iterator[str]:
    """Yield for each module of a cycle which module it imports, and on which lines."""
    for importer, imported in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
        places = sorted(
            (place["line_number"], place["line_contents"])
            for place in graph.get_import_details(importer=importer, imported=imported)
        )
        lines = "; ".join(f"line {number}: {text}" for number, text in places)
        yield f"  {importer} imports {imported} ({lines})"


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return graph_of(PACKAGE)


def test_import_graph_of_the_packages_has_no_cycle(graph: grimp.ImportGraph) -> None:
    text = report(graph)
    if text:
        pytest.fail(text, pytrace=False)


def test_import_graph_contains_every_module_of_the_packages(graph: grimp.ImportGraph) -> None:
    folders = {"kafkaproto": "kafkaproto", "broker": "kafkaproto.broker", "pipeline": "kafkaproto.pipeline"}
    expected = set()
    for folder, package in folders.items():
        for file in (ROOT / folder).rglob("*.py"):
            inner = file.relative_to(ROOT / folder).with_suffix("").parts
            expected.add(".".join((package, *(inner[:-1] if inner[-1] == "__init__" else inner))))
    assert expected - graph.modules == set()


def made_up(folder: Path, name: str, files: dict[str, str]) -> grimp.ImportGraph:
    """Write a package and build its graph; `{name}` in a text is the package's name."""
    (folder / name).mkdir()
    for module, text in {"__init__": "", **files}.items():
        (folder / name / f"{module}.py").write_text(text.format(name=name))
    return graph_of(name)


CHAIN = {
    "top": "from {name}.middle import Middle\nfrom {name}.bottom import Bottom\n",
    "middle": "import {name}.bottom\n",
    "bottom": "class Bottom: pass\n",
}
BACK = {
    "at the top of a module": "from {name}.top import Top\n",
    "for type checkers": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {name} import top\n",
    "in a function": "def late():\n    from {name}.top import Top\n    return Top\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_import_cycle_report_of_an_acyclic_package_is_empty(folder: Path) -> None:
    assert report(made_up(folder, "acyclic_package", CHAIN)) == ""


@pytest.mark.parametrize("back", BACK)
def test_import_cycle_search_returns_overlapping_cycles_of_2_and_3_modules(folder: Path, back: str) -> None:
    name = f"cyclic_package_{[*BACK].index(back)}"
    graph = made_up(folder, name, {**CHAIN, "bottom": BACK[back]})
    assert cycles(graph) == [
        (f"{name}.bottom", f"{name}.top"),
        (f"{name}.bottom", f"{name}.top", f"{name}.middle"),
    ]


def test_import_cycle_report_lists_each_import_of_the_cycle_with_its_line_number(folder: Path) -> None:
    graph = made_up(folder, "reported_package", {"a": "import {name}.b\n", "b": "\n\nfrom {name} import a\n"})
    assert report(graph).splitlines() == [
        "1 import cycles:",
        "",
        "reported_package.a -> reported_package.b -> reported_package.a",
        "  reported_package.a imports reported_package.b (line 1: import reported_package.b)",
        "  reported_package.b imports reported_package.a (line 3: from reported_package import a)",
    ]


def test_import_cycle_search_returns_two_cycles_that_have_no_module_in_common(folder: Path) -> None:
    pair = "from {name} import {{}}\n"
    texts = {"a": "b", "b": "a", "c": "d", "d": "c", "e": "a"}
    graph = made_up(folder, "paired_package", {module: pair.replace("{{}}", other) for module, other in texts.items()})
    assert cycles(graph) == [("paired_package.a", "paired_package.b"), ("paired_package.c", "paired_package.d")]
