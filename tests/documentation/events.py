"""The kinds of events in the broker's code and the names of their facts, to compare them with the tables of the documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from kafkaproto.broker.runtime.events import UNDELIVERABLE
from tests.documentation.blocks import ROOT

RECORDER = ROOT / "broker" / "observe" / "recorder.py"
ACCEPTOR = ROOT / "broker" / "network" / "acceptor.py"
_KINDS_BY_NAME = {"UNDELIVERABLE": UNDELIVERABLE}


Facts = dict[str, None]
"""The names of facts in the order in which the code lists them."""


def journal_events() -> dict[str, set[str]]:
    """Return the kinds of events that the broker's packages note in the journal, with the names of their facts."""
    return {kind: set(facts) for kind, facts in ordered_journal_events().items()}


def ordered_journal_events() -> dict[str, Facts]:
    """Return the kinds of events that the broker's packages note in the journal, with the names of their facts in order."""
    files = [path for path in sorted((ROOT / "broker").rglob("*.py")) if path != RECORDER]
    return _united(call for path in files for call in _events(path)) | _united(_connection_events())


def recorder_events() -> dict[str, set[str]]:
    """Return the kinds of events that only the recorder of a trace notes, with the names of their facts."""
    return {kind: set(facts) for kind, facts in ordered_recorder_events().items()}


def ordered_recorder_events() -> dict[str, Facts]:
    """Return the kinds of events that only the recorder of a trace notes, with the names of their facts in order."""
    return _united(_events(RECORDER))


def documented(page: str, heading: str) -> dict[str, set[str]]:
    """Return the first table below a heading of a page: the name in the first column -> the names in the last column."""
    section = page.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| `")
    ]
    return {kind: set(re.findall("`([^`]+)`", row[-1])) for row in rows for kind in re.findall("`([^`]+)`", row[0])}


def _united(events: Iterator[tuple[str, Facts]]) -> dict[str, Facts]:
    kinds: dict[str, Facts] = {}
    for kind, facts in events:
        kinds.setdefault(kind, {}).update(facts)
    return kinds


def _events(path: Path) -> Iterator[tuple[str, Facts]]:
    """Yield (kind, names of facts) for each call of `noted` whose kind is a constant."""
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for call in _calls(function, "noted"):
                kind = _kind(call.args[2]) if len(call.args) == 4 else None
                if kind is not None:
                    yield kind, _keys(call.args[3], function)


def _connection_events() -> Iterator[tuple[str, Facts]]:
    """Yield the events of the acceptor, which its method `_note` completes."""
    module = ast.parse(ACCEPTOR.read_text())
    [note] = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name == "_note"]
    common = {key: None for node in ast.walk(note) for key in (_keys(node, note) if isinstance(node, ast.Dict) else ())}
    for call in _calls(module, "_note"):
        if call.args and (kind := _kind(call.args[0])) is not None:
            yield kind, common | {keyword.arg: None for keyword in call.keywords if keyword.arg}


def _calls(scope: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield node


def _kind(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return _KINDS_BY_NAME.get(node.id) if isinstance(node, ast.Name) else None


def _keys(node: ast.expr, function: ast.AST) -> Facts:
    """Return the constant keys of a dict, of the dicts it unpacks, and of those assigned to its name in the function."""
    if isinstance(node, ast.Dict):
        names: Facts = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                names[str(key.value)] = None
            elif key is None:
                names |= _keys(value, function)
        return names
    if not isinstance(node, ast.Name):
        return {}
    fact_names: Facts = {}
    for statement in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
            targets = [statement.target]
        for target in targets:
            if isinstance(target, ast.Name) and target.id == node.id and isinstance(statement.value, ast.Dict):  # type: ignore[attr-defined]
                fact_names |= _keys(statement.value, function)  # type: ignore[attr-defined]
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == node.id:
                fact_names |= {str(target.slice.value): None} if isinstance(target.slice, ast.Constant) else {}
    return fact_names
