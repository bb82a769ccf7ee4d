"""Request sequences and conversations that differ only in some repetitions, with the reason. They are listed, never dropped."""

from __future__ import annotations

UNSTABLE: dict[int, str] = {}
"""Maps the seeds of unstable request sequences to reasons."""
UNSTABLE_CONVERSATIONS: dict[tuple[str, str, int], str] = {}
"""Maps (subject, release, seed) of unstable conversations to reasons. Mixed groups show only the sizes of assignments: `range` sorts
members by id, and the id of the classic member is random (GN-40)."""
