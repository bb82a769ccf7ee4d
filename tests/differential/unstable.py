"""Request sequences and conversations that differ only in some repetitions, with the reason. They are listed, never dropped."""

from __future__ import annotations

UNSTABLE: dict[tuple[str, str, int], str] = {
    (
        "log",
        "4.2",
        77,
    ): "two batches get the time of their append, and ListOffsets returns the offset of the largest timestamp. "
    "A cluster that appends both batches in the same millisecond returns the offset of the first, otherwise that of the second."
}
"""Maps (subject, release, seed) to the reason. A difference that is not listed here fails the tests and the long run, because it may be an error
that occurs only sometimes."""
