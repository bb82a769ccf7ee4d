"""Test one mutated tree: a copy of a tree with one mutation, and the tree's own tests in stages until one fails.

The tests are those of `make test`, except the tests of this program, in one process, with Hypothesis seeded. A failing test counts only if
it fails again when it runs alone: a busy machine must not catch a mutation. A run that does not end counts as a failure.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import NamedTuple

from tests.mutations.sites import PACKAGE, Site, mutated
from tests.rules import SLOW_MARKERS

ROOT = Path(__file__).resolve().parents[2]
NOT_COPIED = (".git", ".venv", ".cache", ".hypothesis", ".*_cache", "*.egg-info", "build", "dist")
MOST_MEMORY_BYTES = 6 * 1024**3
"""A mutated loop may never end and allocate memory without limit."""
COMPILED = ("kafkaproto", "broker", "pipeline", "tests")
PYTEST_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0")
NO_TESTS = 5
"""Exit status of pytest."""
EXCERPT_LENGTH = 50


class Stage(NamedTuple):
    """One run of pytest. paths: its arguments. timeout_s: several times its usual duration; each test also has a timeout of 60 s."""

    name: str
    paths: tuple[str, ...]
    timeout_s: int


STAGES = (
    Stage("golden", ("tests/golden",), 300),
    Stage("broker", ("tests/broker",), 600),
    Stage("conformance", ("tests/conformance",), 300),
    Stage(
        "rest",
        ("tests", *(f"--ignore=tests/{name}" for name in ("golden", "broker", "conformance", "mutations"))),
        1200,
    ),
)


class Failure(NamedTuple):
    """The failure that caught a mutation. test: the first failing test, or the outcome of the run if pytest names none."""

    stage: str
    test: str


Runner = Callable[[Path, Stage, tuple[str, ...]], Failure | None]
"""Run a stage in a tree, without the tests named last; return the first failure."""


class Edit(NamedTuple):
    """The line of a mutation before and after."""

    before: str
    after: str


@contextmanager
def copied(tree: Path) -> Iterator[Path]:
    """Yield a copy of a tree in a scratch folder. Symlinks stay symlinks, times of files are kept, and `.venv` is a link."""
    with TemporaryDirectory(prefix="mutations-") as scratch:
        copy = Path(scratch) / "tree"
        shutil.copytree(tree, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
        (copy / ".venv").symlink_to(sys.prefix)
        yield copy


@contextmanager
def checked_out(revision: str, root: Path = ROOT) -> Iterator[Path]:
    """Yield a scratch folder with the files of a revision of git, its modules compiled."""
    archive = subprocess.run(["git", "archive", revision], cwd=root, capture_output=True, check=True).stdout
    with TemporaryDirectory(prefix="mutations-") as scratch:
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(scratch, filter="tar")
        subprocess.run([sys.executable, "-m", "compileall", "-q", *COMPILED], cwd=scratch, check=True)
        yield Path(scratch)


def apply(site: Site, tree: Path) -> Edit:
    """Write one mutation into a tree."""
    path = tree / site.path
    source = path.read_bytes()
    path.write_bytes(mutated(source, site))
    return edit_of(source, site)


def edit_of(source: bytes, site: Site) -> Edit:
    """Return the line of a mutation before and after, each in one line and shortened around the mutation."""
    line_end = source.find(b"\n", site.end)
    before, code = source[: site.start].splitlines()[-1] if site.start else b"", source[site.start : site.end]
    first, last = before.decode().lstrip(), source[site.end : line_end].decode()
    if source[: site.start].endswith(b"\n"):
        first = ""
    return Edit(*(_shortened(first, text, last) for text in (code.decode(), site.replacement)))


def _shortened(first: str, code: str, last: str) -> str:
    first = first if len(first) <= EXCERPT_LENGTH else f"…{first[-EXCERPT_LENGTH:]}"
    last = last if len(last) <= EXCERPT_LENGTH else f"{last[:EXCERPT_LENGTH]}…"
    code = " ".join(code.split())
    return f"{first}{code if len(code) <= 2 * EXCERPT_LENGTH else f'{code[: 2 * EXCERPT_LENGTH]}…'}{last}"


def caught(tree: Path, run: Runner) -> Failure | None:
    """Return the first failure of the stages that fails again alone, or None if all tests pass."""
    for stage in STAGES:
        unstable: tuple[str, ...] = ()
        while failure := run(tree, stage, unstable):
            if "::" not in failure.test or run(tree, Stage(stage.name, (failure.test,), stage.timeout_s), ()):
                return failure
            unstable += (failure.test,)
    return None


def run_pytest(tree: Path, stage: Stage, left_out: tuple[str, ...]) -> Failure | None:
    """Run a stage with pytest. Raises LookupError if the tree has no such tests."""
    command = [
        *(sys.executable, "-m", "pytest", *PYTEST_OPTIONS),
        *("-m", " and ".join(f"not {marker}" for marker in sorted(SLOW_MARKERS))),
        *(f"--deselect={test}" for test in left_out),
        *stage.paths,
    ]
    with TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=environment_of(tree),
            stdout=output,  # a file: processes left by the tests could hold a pipe open
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_limit_memory,
        )
        try:
            process.wait(stage.timeout_s)
        except subprocess.TimeoutExpired:
            return Failure(stage.name, f"no end within {stage.timeout_s} s")
        finally:
            with suppress(ProcessLookupError):  # including processes left by the tests
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        text = output.read()
    if process.returncode == 0:
        return None
    if process.returncode == NO_TESTS:
        raise LookupError(f"stage {stage.name} has no tests in {tree}: {' '.join(stage.paths)}")
    return Failure(stage.name, first_failed(text) or f"pytest ended with status {process.returncode}")


def environment_of(tree: Path) -> dict[str, str]:
    """Return the environment of a tree's tests: scripts, and programs that run in another folder, import the tree's package, too."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "MAKE"))}
    return {**inherited, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))


def first_failed(output: str) -> str:
    """Return the test, or the module that cannot be imported, that pytest's summary names first."""
    named = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", output, re.MULTILINE)
    return named[1] if named else ""


def is_package_loaded_from(tree: Path) -> bool:
    """Return whether tests that run in a tree import that tree's broker, and not an installed one."""
    script = f"import kafkaproto.{PACKAGE} as package; print(package.__file__)"
    command = [sys.executable, "-c", script]
    completed = subprocess.run(
        command, cwd=tree.parent, env=environment_of(tree), capture_output=True, text=True, check=True
    )
    return Path(completed.stdout.strip()).resolve().is_relative_to(tree.resolve())
