"""Which API versions a Kafka release offers: the broker plays one release, by default 3.9. Data only.

Only what this broker registers is advertised; the rest of a release's table would be a promise it does not keep (M-9).
"""

from __future__ import annotations

from kafkaproto.releases import Ranges, releases, versions

DEFAULT_RELEASE = "3.9"
RELEASES = tuple(releases())


def delays_responses(release: str) -> bool:
    """Whether a throttled answer is itself kept back, as before 2.0, and not sent at once with the connection muted (KIP-219).

    Raises ValueError for a release that is not played.
    """
    return _place(release) < _place("2.0")


def ranges_of(release: str) -> Ranges:
    """api key -> (lowest, highest version). Raises ValueError for a release that is not played, naming those that are."""
    _place(release)
    return versions(release)


def _place(release: str) -> int:
    if release not in RELEASES:
        known = ", ".join(RELEASES)
        raise ValueError(f"release {release!r} is not known; allowed: {known}; for example --release {DEFAULT_RELEASE}")
    return RELEASES.index(release)
