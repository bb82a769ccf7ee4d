"""The output folder of the Parquet tables: a job's results are committed to it completely or not at all.

A job writes into a staging folder; renaming that folder to `_commit` commits the job. If a job is interrupted after the rename, the next job moves
the committed files to their places. New rows of a run (a recording) replace its old rows or are added to them. With the rows, the job commits the
position that it has reached in the run. Files are moved by rename, so the output folder must lie on one file system, local or shared. A lock allows
one job at a time. This module does not depend on traces or Spark.
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
"""The names of the folder with saved positions, and of the file in each of its subfolders. There is a subfolder for each run (recording).

The file stores the position in the recorded files up to which the Parquet tables contain the run.
"""
PLACE = "place"
"""The key of a digest in the manifest, the file that describes the Parquet tables. The manifest has an entry for each run (recording).

In the entry of a run, the value of this key is the SHA-256 digest of the file `PLACE_FILE`. That file stores the position up to which the tables
contain the run.
"""
ADDED = "_added"
"""The folder for new rows that are added to the old rows of their run (recording) instead of replacing them.

It is inside the folder `COMMIT`, to which the staging folder is renamed when a job is finished.
"""
FORMAT = 1
LONGEST_NAME_BYTES = 255
"""The maximum length in bytes of a folder's name on common file systems."""
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{[\]^]""")


class StoreError(ValueError):
    """Raised if a folder of Parquet tables cannot be used as intended. The message says why.

    For example, the folder belongs to another program, is damaged, is locked by another job, or lacks the wanted run (recording).
    """


def folder_of(run: str) -> str:
    """Return the name of the subfolder with the rows of a run (recording) in the folder of a table, as Spark's `partitionBy("run")` does."""
    return "run=" + _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", run)


def is_valid_folder_name(run: str) -> bool:
    """Return True if a folder can have the name of this run (recording). The name comes from a trace or capture and may be any text."""
    try:
        return len(folder_of(run).encode()) <= LONGEST_NAME_BYTES
    except UnicodeEncodeError:
        return False


class Store:
    """The output folder `path` with the Parquet tables of all runs (recordings). Raises StoreError if the folder has only other programs' files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        ours = (MANIFEST, STAGING, COMMIT, LOCK)
        try:
            names = [entry.name for entry in path.iterdir()] if path.exists() else []
        except OSError as error:
            raise StoreError(
                f"the output folder {path} of the tables cannot be listed: {error.strerror}; make it a readable folder, or give another output folder"
            ) from None
        if names and not any(name in names for name in ours):
            raise StoreError(
                f"folder {path} holds files that are not tables, such as {sorted(names)[0]}: give an empty folder or a folder of tables"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Return a context in which no other job can change the Parquet tables. Raises StoreError if another job has locked them.

        At its start, the context cleans up after an interrupted job: it deletes the files that the interrupted job had not committed, and moves those
        that it had committed to their places.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StoreError(f"{self.path}: another job is writing these tables; wait until it ends") from None
            shutil.rmtree(self.path / STAGING, ignore_errors=True)
            self._finish()
            yield

    def manifest(self) -> dict[str, Any]:
        """Return the manifest, which describes the Parquet tables: it maps the name of each run (recording) to a dict.

        The dict has the source of the rows (`meta`, `files`), the number of rows of the run in each table (`rows`) and messages for the user about
        problems of its files (`notices`). Raises StoreError if the manifest cannot be parsed or has another format.
        """
        try:
            content = json.loads((self.path / MANIFEST).read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise StoreError(
                f"the tables' manifest {self.path / MANIFEST} is damaged: {error}; create the tables again in another folder"
            ) from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise StoreError(
                f"the tables' manifest {self.path / MANIFEST} must have format {FORMAT}, because no other format is supported: give another folder"
            )
        runs: dict[str, Any] = content.get("runs", {})
        if not (isinstance(runs, dict) and all(map(_is_run_entry, runs.values()))):
            raise StoreError(
                f"{self.path / MANIFEST} is not a manifest of tables, because its field 'runs' is invalid: give another folder"
            )
        return runs

    def place(self, run: str, entry: Mapping[str, Any]) -> str:
        """Return the saved position in a run (a recording), as JSON: the Parquet tables contain everything recorded before it.

        entry: what `manifest` returns for the run. It has the SHA-256 digest of the file with the position. Returns an empty text if the file is
        missing, or if its content has another digest.
        """
        try:
            text = (self.path / PLACES / folder_of(run) / PLACE_FILE).read_bytes()
        except OSError:
            return ""
        return text.decode(errors="replace") if sha256(text).hexdigest() == entry.get(PLACE) else ""

    def staging(self) -> Path:
        """Create an empty staging folder and return it. A job writes its files there, as <table>/run=<run>/hour=<hour>/…."""
        staged = self.path / STAGING
        staged.mkdir()
        return staged

    def commit(self, runs: Mapping[str, Any], places: Mapping[str, str], added: Collection[str]) -> None:
        """Commit the files that the job has written into the staging folder: they become part of the tables, all or none.

        If a run (recording) is in `added`, its new files are added to its old files; otherwise they replace them. runs: the complete new manifest,
        which maps the name of each run to facts about its tables, as `manifest` returns it. places: maps the name of a run to the position up to
        which the tables contain the run, as JSON.
        """
        staged = self.path / STAGING
        manifest = dict(runs)
        for run, text in places.items():
            place = staged / PLACES / folder_of(run) / PLACE_FILE
            place.parent.mkdir(parents=True)
            place.write_text(text)
            manifest[run] = {**manifest[run], PLACE: sha256(text.encode()).hexdigest()}
        for run in added:
            for folder in list(staged.glob(f"*/{folder_of(run)}")):
                target = staged / ADDED / folder.relative_to(staged)
                target.parent.mkdir(parents=True, exist_ok=True)
                folder.rename(target)
        for name in {folder.name for folder in staged.glob("*/run=*")}:
            for table in {old.parent.name for old in self.path.glob(f"[!_]*/{name}")} | {PLACES}:
                # An empty folder makes `_finish` delete the old one: the run has no rows in this table any more.
                (staged / table / name).mkdir(parents=True, exist_ok=True)
        with (staged / MANIFEST).open("w") as file:
            json.dump({"format": FORMAT, "runs": manifest}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        staged.rename(self.path / COMMIT)
        self._finish()

    def _finish(self) -> None:
        """Move the committed files from the folder `_commit` to their final places, the manifest last. Can be repeated after a crash."""
        committed = self.path / COMMIT
        if (committed / MANIFEST).exists():
            for run in sorted(committed.glob("*/run=*")):
                target = self.path / run.parent.name / run.name
                shutil.rmtree(target, ignore_errors=True)
                if any(run.iterdir()):
                    target.parent.mkdir(exist_ok=True)
                    run.rename(target)
                else:
                    run.rmdir()
            for part in sorted(committed.glob(f"{ADDED}/*/run=*/**/*")):
                if part.is_file():
                    target = self.path / part.relative_to(committed / ADDED)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    part.replace(target)
            (committed / MANIFEST).replace(self.path / MANIFEST)
        shutil.rmtree(committed, ignore_errors=True)


def _is_run_entry(entry: Any) -> bool:
    counts = [entry.get("files"), entry.get("rows")] if isinstance(entry, dict) else []
    return bool(counts) and all(isinstance(c, dict) and all(type(n) is int for n in c.values()) for c in counts)
