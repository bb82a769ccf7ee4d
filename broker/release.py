"""Which API versions a Kafka release offers: the broker plays one release, 3.9 unless told (house §4, "Versions"). Data only.

Only what this broker registers is advertised; the rest of a release's table would be a promise it does not keep (M-9).
"""

from __future__ import annotations

from kafkaproto.api import APIS

DEFAULT_RELEASE = "3.9"

Ranges = dict[int, tuple[int, int]]


def ranges_of(release: str) -> Ranges:
    """api key -> (lowest, highest version). Raises ValueError for a release that is not known yet, naming those that are."""
    if release not in RELEASES:
        known = ", ".join(RELEASES)
        raise ValueError(f"release {release!r} is not known; allowed: {known}; for example --release {DEFAULT_RELEASE}")
    return RELEASES[release]


# The schemas are those of 3.9, cut to the versions that a 3.9 broker advertises: a release is its schemas until there are more.
RELEASES: dict[str, Ranges] = {"3.9": {int(key): (info.min_version, info.max_version) for key, info in APIS.items()}}
