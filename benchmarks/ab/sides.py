"""The two sides of a comparison: the working tree, and a worktree of another commit in `.cache/ab`, each with the packages it declares.

The virtual environment of a side has the dependencies of its `pyproject.toml` and nothing else, and the side's folder is on the path.
Sides that declare the same dependencies share one environment, so that a comparison never measures two versions of a package.

The paths of both sides have the same length, so that the interpreter lays out its memory in the same way. The interpreter's caches are indexed
by address: with different addresses, different entries collide, and equal code runs different numbers of instructions. A difference of about
1 % remains.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / ".cache" / "ab"
BASE, NOW = "base", "now"
COMMIT_LENGTH = 40
LINKED = ("kafkaproto", "broker", "pipeline", "kafkaproto_cli.py")
"""The files and folders of a checkout that a broker needs. A side of a comparison may be a folder of links to them.

The last file exists only in commits from before kafkaproto/cli.py was added.
"""


class SideError(Exception):
    """Raised for a base commit that does not exist, or a side that cannot be built. The message is one line."""


class Side(NamedTuple):
    """A side of a comparison: the other commit, or the working tree.

    name: "base" for the other commit, "now" for the working tree. folder: a checkout, or a folder with links to the files of a checkout. python: the
    interpreter of the side's virtual environment.
    """

    name: str
    folder: Path
    python: Path

    def environment(self) -> dict[str, str]:
        """Return all environment variables for a process with the code of this side. The two sides of a comparison differ only in `PYTHONPATH`."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": os.environ.get("HOME", "/"),
            "LC_ALL": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(self.folder),
            "PYTHONPYCACHEPREFIX": str(CACHE / "pycache"),
        }


def resolve(base: str, root: Path = ROOT) -> str:
    """Return the full id of the commit that `base` names: a branch, a tag, an id or a form such as HEAD~1. root: the checkout.

    Raises SideError if there is no such commit or `root` is not a checkout.
    """
    completed = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
    if completed.returncode == 0:
        return completed.stdout.strip()
    if _git(root, "rev-parse", "--git-dir").returncode:
        raise SideError(
            f"{root} is not a git checkout; run make ab, which compares the working tree with a commit, in a clone of the repository"
        )
    raise SideError(
        f"BASE={base} is not a commit of this repository; pass a branch, a tag or an id, for example BASE=HEAD~1"
    )


def base_side(commit: str) -> Side:
    """Return a commit as one side of a comparison. Creates its worktree and virtual environment unless an earlier comparison has left them."""
    folder = CACHE / commit
    ready = CACHE / f"{commit}.ready"
    if not (ready.exists() and folder.exists()):
        shutil.rmtree(folder, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        # --force: the folder of an earlier worktree may have been deleted without `git worktree remove`.
        completed = _git(
            ROOT, "-c", "core.hooksPath=/dev/null", "worktree", "add", "--force", "--detach", str(folder), commit
        )
        if completed.returncode:
            raise SideError(f"git cannot check out the commit {commit} in {folder}: {_last_line(completed.stderr)}")
        ready.touch()
    return _side(BASE, folder, folder)


def now_side() -> Side:
    """Return the working tree, with its uncommitted changes, as one side of a comparison."""
    folder = CACHE / "working-tree".ljust(COMMIT_LENGTH, "-")
    folder.mkdir(parents=True, exist_ok=True)
    for name in LINKED:
        (folder / name).unlink(missing_ok=True)
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    return _side(NOW, folder, ROOT)


def _side(name: str, folder: Path, checkout: Path) -> Side:
    side = Side(name, folder, environment_of(dependencies_of(checkout)) / "bin" / "python")
    compile_modules(side)
    return side


def compile_modules(side: Side) -> None:
    """Compile all changed modules of `side` to bytecode: an installed broker also has compiled modules. Raises SideError if this fails."""
    modules = [str(side.folder / name) for name in LINKED if (side.folder / name).exists()]
    command = [side.python, "-P", "-m", "compileall", "-q", *modules]
    completed = subprocess.run(command, env=side.environment(), capture_output=True, text=True, check=False)
    if completed.returncode:
        raise SideError(
            f"Python cannot compile the modules in {side.folder}: {_last_line(completed.stdout or completed.stderr)}"
        )


def dependencies_of(folder: Path) -> list[str]:
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    except (FileNotFoundError, KeyError, tomllib.TOMLDecodeError) as error:
        raise SideError(f"{folder / 'pyproject.toml'} has no readable table `project`: {error}") from None
    return sorted(project.get("dependencies", []))


def environment_of(dependencies: list[str]) -> Path:
    """Return the folder of a virtual environment with these packages. Creates it unless an earlier comparison has left it.

    dependencies: the requirements of the packages, as pip accepts them.
    """
    key = hashlib.sha256("\n".join([sys.version, *dependencies]).encode()).hexdigest()[:16]
    folder = CACHE / f"env-{key}"
    ready = CACHE / f"env-{key}.ready"
    if not (ready.exists() and folder.exists()):
        shutil.rmtree(folder, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
        commands = [
            [sys.executable, "-m", "venv", "--without-pip", str(folder)],
            [*pip, "install", "--quiet", "--disable-pip-version-check", *dependencies],
        ]
        for command in commands[: 2 if dependencies else 1]:
            completed = subprocess.run(command, capture_output=True, text=True, check=False)
            if completed.returncode:
                raise SideError(
                    f"the virtual environment {folder} cannot be created: {_last_line(completed.stderr or completed.stdout)}"
                )
        ready.touch()
    return folder


def clean() -> int:
    """Remove every worktree and environment of earlier comparisons. Returns how many worktrees there were."""
    worktrees = [path for path in CACHE.glob("*") if re.fullmatch("[0-9a-f]{40,}", path.name) and path.is_dir()]
    for path in worktrees:
        completed = _git(ROOT, "worktree", "remove", "--force", str(path))
        if completed.returncode and path.exists() and not (path / ".git").exists():
            continue  # a worktree that was never finished; it goes with the folder
        if completed.returncode:
            raise SideError(f"git cannot remove the worktree {path}: {_last_line(completed.stderr)}")
    shutil.rmtree(CACHE, ignore_errors=True)
    return len(worktrees)


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SideError(
            "make ab needs git to check out the base commit, but git is not installed; install it, for example with apt install git"
        ) from None


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]
