"""Import directions are enforced by tests (docs/explanation/architecture.md): each contract holds, and a forbidden import breaks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("kafkaproto", "broker", "pipeline")

CROSSINGS = [
    ("rooms", "kafkaproto/broker/log/store.py", "import kafkaproto.broker.requests.pipeline"),
    ("rooms", "kafkaproto/broker/handlers/fetch.py", "import kafkaproto.broker.server.channel"),
    ("rooms", "kafkaproto/broker/replication/partition.py", "import kafkaproto.broker.fetch.session"),
    ("rooms", "kafkaproto/broker/assembly.py", "import kafkaproto.broker.cluster"),
    ("asyncio", "kafkaproto/broker/network/connection.py", "import asyncio"),
    ("asyncio", "kafkaproto/broker/runtime/timers.py", "import threading"),
    ("asyncio", "kafkaproto/frame.py", "import socket"),
    ("asyncio", "kafkaproto/broker/runtime/timers.py", "import queue"),
    ("asyncio", "kafkaproto/broker/proxy/connection.py", "import ssl"),
    ("broker", "kafkaproto/broker/log/store.py", "import kafkaproto.pipeline.session"),
    ("state", "kafkaproto/broker/quota/windows.py", "import kafkaproto.messages.fetch"),
    ("state", "kafkaproto/broker/fetch/read.py", "from kafkaproto.messages.fetch import FetchRequest"),
    ("observers", "kafkaproto/broker/handlers/fetch.py", "import kafkaproto.broker.observe.journal"),
    ("handlers", "kafkaproto/broker/handlers/fetch.py", "import kafkaproto.broker.handlers.produce"),
    ("generator", "kafkaproto/broker/requests/pipeline.py", "import kafkaproto.generator"),
    ("codec", "kafkaproto/api.py", "import kafkaproto.broker.runtime.clock"),
    ("codec", "kafkaproto/conformance/subject.py", "import kafkaproto.broker.runtime.clock"),
    ("conformance", "kafkaproto/broker/log/store.py", "import kafkaproto.conformance.wire"),
    ("conformance", "kafkaproto/client.py", "import kafkaproto.conformance.client"),
    ("pipeline", "kafkaproto/pipeline/__init__.py", "import kafkaproto.broker.log.store"),
]


def lint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Its own cache, and the copy first on the path: the installed project must not be checked instead.
    return subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_no_module_violates_an_import_contract() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(("contract", "file", "line"), CROSSINGS, ids=[f"{c}: {line}" for c, _, line in CROSSINGS])
def test_each_import_contract_fails_on_a_violating_import(copy: Path, contract: str, file: str, line: str) -> None:
    crossed = copy / file
    crossed.write_text(crossed.read_text() + f"\n\n{line}\n")
    result = lint(copy, "--contract", contract)
    assert result.returncode == 1, result.stdout
    assert "BROKEN" in result.stdout


def test_every_import_contract_is_tested_with_a_violating_import() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    ids = {line.split('"')[1] for line in text.splitlines() if line.startswith('id = "')}
    assert ids == {contract for contract, _, _ in CROSSINGS}
