"""Ranges of versions, as Kafka's message definitions write them: ``3``, ``0-7``, ``9+``, ``none``.

A small value type for the generator and other code that handles versions. Kafka class: ``org.apache.kafka.message.Versions``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

OPEN_ENDED = 32767
"""The highest possible version (an int16). A range that ends here was written with a plus sign."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """The versions from ``lowest`` to ``highest``, both inclusive. Empty if ``highest`` is below ``lowest``."""

    lowest: int
    highest: int

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Parse ``"3"``, ``"0-7"``, ``"9+"`` or ``"none"``. Raises ValueError for anything else."""
        text = text.strip()
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(_version(text[:-1]), OPEN_ENDED)
        low, dash, high = text.partition("-")
        versions = cls(_version(low), _version(high) if dash else _version(low))
        if not versions:
            raise ValueError(f"the version range {text!r} must be ascending, for example 0-3")
        return versions

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lowest, self.highest + 1))

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.highest == OPEN_ENDED:
            return f"{self.lowest}+"
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"

    @property
    def open_ended(self) -> bool:
        """Return whether the range has no upper end, such as `9+`, or is empty (`none`). Only such a range is valid for `flexibleVersions`."""
        return not self or self.highest == OPEN_ENDED

    def within(self, other: VersionRange) -> bool:
        """Return whether every version of this range is in `other`. The empty range is within any range."""
        return not self or (other.lowest <= self.lowest and self.highest <= other.highest)

    def intersect(self, other: VersionRange) -> VersionRange:
        """Return the versions that both ranges contain."""
        common_range = VersionRange(max(self.lowest, other.lowest), min(self.highest, other.highest))
        return common_range or NO_VERSIONS


def _version(text: str) -> int:
    number = int(text)
    if not 0 <= number <= OPEN_ENDED:
        raise ValueError(f"a version must be 0 to {OPEN_ENDED} (got {number})")
    return number


NO_VERSIONS = VersionRange(0, -1)
