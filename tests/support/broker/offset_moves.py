"""How far a starting broker process has moved the committed offsets of an earlier version from its metadata log to `__consumer_offsets`."""

from __future__ import annotations

import time
from pathlib import Path

from tests.support.broker.kills import PATIENCE_SECONDS

METADATA_LOG = "facts"
MOVED = b"group_gone"
"""The kind of the record in the metadata log that follows the move of one group."""


def moved(folder: Path) -> int:
    """Return how many groups the last process on a data directory has moved since it began to append to the metadata log."""
    return (folder / METADATA_LOG).read_bytes().count(MOVED)


def wait_for_moves(folder: Path, moves: int) -> None:
    """Wait until the process that is starting on a data directory has moved this number of groups."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while moved(folder) < moves and time.monotonic() < deadline:
        """The broker is starting."""
