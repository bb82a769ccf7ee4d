"""The corpus: one zip archive per target with files named after the hash of their contents. Independent of the targets."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).with_name("corpus")
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def load(target: str) -> list[bytes]:
    """Return the inputs in the archive of a target."""
    with zipfile.ZipFile(FOLDER / f"{target}.zip") as archive:
        return [archive.read(name) for name in archive.namelist()]


def save(target: str, inputs: Iterable[bytes]) -> None:
    """Write the archive; equal inputs give equal bytes."""
    FOLDER.mkdir(exist_ok=True)
    named = {hashlib.sha256(data).hexdigest()[:16]: data for data in inputs}
    with zipfile.ZipFile(FOLDER / f"{target}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in sorted(named.items()):
            archive.writestr(zipfile.ZipInfo(name, LONG_AGO), data, zipfile.ZIP_DEFLATED)
