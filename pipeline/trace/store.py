"""The folder of the tables: what is in it, and how a job's work gets into it at once or not at all.

A job writes into a staging folder; the rename of that to `_commit` is the decision. What then has to be moved is moved by whoever
comes next, if the job dies. The rows of a run replace those that are there, or are added to them; the place at which the job left it goes
with them, and is good for these rows only. Files are moved by rename: OUT is a folder of one file system, local or shared, with one job
at a time (a lock sees to it). Must never know traces or Spark.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

MANIFEST, STAGING, COMMIT, LOCK = "_manifest.json", "_staging", "_commit", "_lock"
PLACES, PLACE_FILE = "_places", "place.json"
"""A folder as if it were a table, and the one file of a run in it."""
PLACE = "place"
"""In the manifest: the digest of that file."""
ADDED = "_added"
"""In what is decided: tables of runs that are added to."""
FORMAT = 1
LONGEST_NAME_BYTES = 255
"""Of a folder, on the file systems that there are."""
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{[\]^]""")


class StoreError(ValueError):
    """A folder that is not ours, or that somebody else is at work on: the message names it."""


def folder_of(run: str) -> str:
    """Its name within each table: as Spark's `partitionBy("run")` has it, whoever writes."""
    return "run=" + _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", run)


def can_be_held(run: str) -> bool:
    """Whether a folder can have the name of a run, which whoever made its files has chosen."""
    try:
        return len(folder_of(run).encode()) <= LONGEST_NAME_BYTES
    except UnicodeEncodeError:
        return False


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
        """run → what its tables were made of: `meta`, `files` and `rows`, and what else was told of it. Raises StoreError for a manifest of a
        version that comes after this one, and for what is none."""
        try:
            told = json.loads((self.path / MANIFEST).read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise StoreError(f"{self.path / MANIFEST} cannot be read: {error}") from None
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise StoreError(f"{self.path / MANIFEST} is not of format {FORMAT}, the only one that this program knows")
        runs: dict[str, Any] = told.get("runs", {})
        if not (isinstance(runs, dict) and all(map(_is_of_a_run, runs.values()))):
            raise StoreError(f"{self.path / MANIFEST} does not tell what the tables were made of: give another folder")
        return runs

    def place(self, run: str, told: Mapping[str, Any]) -> str:
        """What `commit` was given as the place of a run; empty if that is not what is there. told: of the run by the manifest."""
        try:
            text = (self.path / PLACES / folder_of(run) / PLACE_FILE).read_bytes()
        except OSError:
            return ""
        return text.decode(errors="replace") if sha256(text).hexdigest() == told.get(PLACE) else ""

    def staging(self) -> Path:
        """An empty folder to write <table>/run=<run>/hour=<hour>/… into."""
        made = self.path / STAGING
        made.mkdir()
        return made

    def commit(self, runs: Mapping[str, Any], places: Mapping[str, str], added: Collection[str]) -> None:
        """What was staged replaces what was there of the same runs; of those in `added` it goes beside it, under names of its own.

        runs: the whole manifest. places: of runs that were staged, where they were left.
        """
        staged = self.path / STAGING
        told = dict(runs)
        for run, text in places.items():
            place = staged / PLACES / folder_of(run) / PLACE_FILE
            place.parent.mkdir(parents=True)
            place.write_text(text)
            told[run] = {**told[run], PLACE: sha256(text.encode()).hexdigest()}
        for run in added:
            for folder in list(staged.glob(f"*/{folder_of(run)}")):
                target = staged / ADDED / folder.relative_to(staged)
                target.parent.mkdir(parents=True, exist_ok=True)
                folder.rename(target)
        for name in {folder.name for folder in staged.glob("*/run=*")}:
            for table in {old.parent.name for old in self.path.glob(f"[!_]*/{name}")} | {PLACES}:
                # Where a run has nothing any more, nothing replaces it.
                (staged / table / name).mkdir(parents=True, exist_ok=True)
        with (staged / MANIFEST).open("w") as file:
            json.dump({"format": FORMAT, "runs": told}, file, indent=1)
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
                if any(run.iterdir()):
                    target.parent.mkdir(exist_ok=True)
                    run.rename(target)
                else:
                    run.rmdir()
            for part in sorted(decided.glob(f"{ADDED}/*/run=*/**/*")):
                if part.is_file():
                    target = self.path / part.relative_to(decided / ADDED)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    part.replace(target)
            (decided / MANIFEST).replace(self.path / MANIFEST)
        shutil.rmtree(decided, ignore_errors=True)


def _is_of_a_run(told: Any) -> bool:
    counts = [told.get("files"), told.get("rows")] if isinstance(told, dict) else []
    return bool(counts) and all(isinstance(c, dict) and all(type(n) is int for n in c.values()) for c in counts)
