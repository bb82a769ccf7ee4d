"""The folder of the tables: what is in it, and how a job's work gets into it at once or not at all.

A job writes into a staging folder; the rename of that to `_commit` is the decision. What then has to be moved is moved by whoever
comes next, if the job dies. Runs are replaced whole. Files are moved by rename: OUT is a folder of one file system, local or shared,
with one job at a time (a lock sees to it). Must never know traces or Spark.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MANIFEST, STAGING, COMMIT, LOCK = "_manifest.json", "_staging", "_commit", "_lock"
FORMAT = 1


class StoreError(ValueError):
    """A folder that is not ours, or that somebody else is at work on: the message names it."""


class Store:
    """The tables under `path`. Raises StoreError for a folder that holds something else: nothing of it is touched."""

    def __init__(self, path: Path) -> None:
        self.path = path
        ours = (MANIFEST, STAGING, COMMIT, LOCK)
        try:
            held = [entry.name for entry in path.iterdir()] if path.exists() else []
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}; give a folder for the tables") from None
        if held and not any(name in held for name in ours):
            raise StoreError(f"{path} is no folder of tables, and not empty ({sorted(held)[0]}): give one that is")

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Alone: finishes first what a job before has decided, and forgets what it has not."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StoreError(f"{self.path}: another job is at work on these tables") from None
            shutil.rmtree(self.path / STAGING, ignore_errors=True)
            self._finish()
            yield

    def manifest(self) -> dict[str, Any]:
        """run → what its tables were made of. Raises StoreError for a manifest of a version that comes after this one."""
        try:
            told = json.loads((self.path / MANIFEST).read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise StoreError(f"{self.path / MANIFEST} cannot be read: {error}") from None
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise StoreError(f"{self.path / MANIFEST} is not of format {FORMAT}, the only one that this program knows")
        runs: dict[str, Any] = told["runs"]
        return runs

    def staging(self) -> Path:
        """An empty folder to write <table>/run=<run>/hour=<hour>/… into."""
        made = self.path / STAGING
        made.mkdir()
        return made

    def commit(self, runs: dict[str, Any]) -> None:
        """What was staged replaces what was there of the same runs. runs: the whole manifest."""
        staged = self.path / STAGING
        with (staged / MANIFEST).open("w") as file:
            json.dump({"format": FORMAT, "runs": runs}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        staged.rename(self.path / COMMIT)
        self._finish()

    def _finish(self) -> None:
        """Move what was decided. Each step may be done again: the manifest goes last."""
        decided = self.path / COMMIT
        if (decided / MANIFEST).exists():
            for run in sorted(decided.glob("*/run=*")):
                target = self.path / run.parent.name / run.name
                shutil.rmtree(target, ignore_errors=True)
                target.parent.mkdir(exist_ok=True)
                run.rename(target)
            (decided / MANIFEST).replace(self.path / MANIFEST)
        shutil.rmtree(decided, ignore_errors=True)
