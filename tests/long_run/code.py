"""Hashes of the code of the project, which decide whether a result of the long run still counts."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROVEN = ("broker", "kafkaproto")
"""The folders whose code the parts run."""
SUITE, SIMULATED, CLIENTS = "conformance suite", "loaded by simulation", "clients by release"
"""More keys of `code_hashes`: the tests and profiles of kafkaproto/conformance, the files that a simulation loads, and `CLIENTS_FILE`."""
CLIENTS_FILE = "tests/support/by_release/outcomes.json"
"""What client libraries get from brokers of each release."""
SIMULATED_FILES = Path(__file__).resolve().parent / "simulated_files.txt"
"""The Python files of `PROVEN` that a simulation loads, one on each line."""


def code_hashes(root: Path = ROOT) -> dict[str, str] | None:
    """Return a hash of the committed code by key, or None if there are uncommitted changes.

    The keys are the folders of `PROVEN` (without the suite), `SUITE`, `SIMULATED` and `CLIENTS`. Comments, docstrings, the names of tests and of
    private variables of a module, and the layout of Python files are left out, because they change nothing that a part can show.
    """
    if git("status", "--porcelain", "--", *PROVEN, CLIENTS_FILE, root=root):
        return None
    listed = simulated_files()
    hashes = {key: hashlib.sha256() for key in (*PROVEN, SUITE, SIMULATED, CLIENTS)}
    for name in git("ls-files", "--", *PROVEN, root=root).splitlines():
        path = root / name
        if path.is_symlink():
            continue
        content = path.read_bytes()
        code = ast.dump(_without_words(ast.parse(content))).encode() if path.suffix == ".py" else content
        in_suite = name.startswith(("kafkaproto/conformance/test_", "kafkaproto/conformance/profiles/"))
        keys = [SUITE if in_suite else name.split("/")[0]]
        if name in listed or (path.suffix != ".py" and not in_suite):
            keys.append(SIMULATED)
        for key in keys:
            hashes[key].update(f"{name} {len(code)} ".encode())
            hashes[key].update(code)
    if (clients := root / CLIENTS_FILE).exists():
        hashes[CLIENTS].update(clients.read_bytes())
    return {key: hashed.hexdigest()[:40] for key, hashed in hashes.items()}


def _without_words(module: ast.Module) -> ast.Module:
    """Remove the strings that stand alone as statements (docstrings, and those that document attributes), and names that only this module knows."""
    private = _private_variables(module)
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            node.name = "test_"
        if isinstance(node, ast.Name):
            node.id = private.get(node.id, node.id)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [statement for statement in body if not _is_string(statement)]
    return module


def _private_variables(module: ast.Module) -> dict[str, str]:
    """Return a number for each private variable of a module, in the order of their first assignments.

    Variables whose names are also those of parameters keep their names.
    """
    parameters = {node.arg for node in ast.walk(module) if isinstance(node, ast.arg)}
    names = (
        target.id
        for statement in module.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name) and target.id.startswith("_") and not target.id.startswith("__")
        if target.id not in parameters
    )
    return {name: f"_{number}" for number, name in enumerate(dict.fromkeys(names))}


def _is_string(statement: ast.AST) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def simulated_files() -> frozenset[str]:
    """Return the names in `SIMULATED_FILES`."""
    return frozenset(SIMULATED_FILES.read_text().splitlines())


def loaded_files() -> frozenset[str]:
    """Return the Python files of `PROVEN` that this process has loaded, relative to the root of the project."""
    paths = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return frozenset(_in_project(Path(path).resolve() for path in paths if path))


def _in_project(paths: Iterable[Path]) -> Iterable[str]:
    folders = [ROOT / folder for folder in PROVEN]
    return (str(path.relative_to(ROOT)) for path in paths if any(path.is_relative_to(folder) for folder in folders))


def git(*command: str, root: Path = ROOT) -> str:
    """Return the output of a git command."""
    completed = subprocess.run(["git", *command], cwd=root, check=True, capture_output=True, text=True)
    return completed.stdout.strip()
