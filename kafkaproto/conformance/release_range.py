"""The releases of Kafka to which a conformance test applies, as the test's pytest marker `releases` gives them."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkaproto.releases import number

MARKER = "releases(first=None, before=None): the releases of Kafka to which the test applies: from `first` on, and older than `before`"


class ReleaseRange(NamedTuple):
    """A range of releases. first: the oldest release in it, None for no limit. before: the first release after the range, None for no limit."""

    first: str | None = None
    before: str | None = None

    def includes(self, release: str) -> bool:
        """Return whether a release, "4.2" for example, is in the range."""
        return not (
            (self.first is not None and number(release) < number(self.first))
            or (self.before is not None and number(release) >= number(self.before))
        )

    def __str__(self) -> str:
        parts = (self.first and f"{self.first} or later", self.before and f"before {self.before}")
        return " and ".join(part for part in parts if part) or "any release"


def of(item: Any) -> ReleaseRange:
    """Return the releases to which a test applies: the range that all `releases` markers of its parameters, function and module have in common.

    item: the pytest item of the test.
    """
    ranges = [ReleaseRange(*marker.args, **marker.kwargs) for marker in item.iter_markers("releases")]
    firsts = [release_range.first for release_range in ranges if release_range.first is not None]
    befores = [release_range.before for release_range in ranges if release_range.before is not None]
    return ReleaseRange(max(firsts, key=number, default=None), min(befores, key=number, default=None))
