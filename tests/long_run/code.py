"""Hashes of the code of the project, which decide whether a result of the long run still counts."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.long_run.words import without_words

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

    The keys are the folders of `PROVEN` (without the suite), `SUITE`, `SIMULATED` and `CLIENTS`. Comments, the layout of Python files and what
    `without_words` removes are left out, because they change nothing that a part can show.
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
        code = ast.dump(without_words(ast.parse(content))).encode() if path.suffix == ".py" else content
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
