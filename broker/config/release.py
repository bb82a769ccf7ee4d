"""Differences between Kafka releases: the versions of each API, and rules. The broker emulates one release, by default 3.9.

The broker advertises only the APIs that it has handlers for, not all APIs of the release (M-9).
"""

from __future__ import annotations

from kafkaproto.releases import Ranges, accepted, releases, versions

DEFAULT_RELEASE = "3.9"
RELEASES = tuple(releases())


def delays_responses(release: str) -> bool:
    """Return whether brokers of a release delay throttled responses instead of muting the connection (KIP-219): true before 2.0.

    Raises ValueError for an unknown release.
    """
    return _place(release) < _place("2.0")


def lists_api_versions_in_error(release: str) -> bool:
    """Return whether an ApiVersions request of an unsupported version gets an error that lists the supported versions: true since 2.4 (KIP-511)."""
    return _place(release) >= _place("2.4")


def has_eligible_leader_replicas(release: str) -> bool:
    """Return whether eligible leader replicas are enabled in a new cluster of a release: true since 4.1 (KIP-966)."""
    return _place(release) >= _place("4.1")


def marks_defaults(release: str) -> bool:
    """Return whether a DescribeConfigs v0 response says which values are defaults: true before 2.7. Since then, `is_default` is False (CF-1)."""
    return _place(release) < _place("2.7")


def has_client_metrics(release: str) -> bool:
    """Return whether a release has subscriptions to client metrics: true since 3.7 (KIP-714)."""
    return _place(release) >= _place("3.7")


def is_release_4(release: str) -> bool:
    """Return whether a release is Kafka 4.0 or later."""
    return _place(release) >= _place("4.0")


def is_release_4_1(release: str) -> bool:
    """Return whether a release is Kafka 4.1 or a later one, so that the rules introduced in 4.1 apply."""
    return _place(release) >= _place("4.1")


def is_release_4_2(release: str) -> bool:
    """Return whether a release is Kafka 4.2 or later."""
    return _place(release) >= _place("4.2")


def ranges_of(release: str) -> Ranges:
    """Return a dict of API keys to (lowest, highest version) in the ApiVersions response of a release. Raises ValueError for an unknown release."""
    _place(release)
    return versions(release)


def accepted_ranges_of(release: str) -> Ranges:
    """Return a dict of API keys to (lowest, highest version) that a broker of a release accepts.

    Brokers of Kafka 4 list versions 0 to 2 of Produce in ApiVersions, but reject them. The result does not contain these versions.
    """
    return accepted(release)


def _place(release: str) -> int:
    if release not in RELEASES:
        release_names = ", ".join(RELEASES)
        raise ValueError(f'unknown release "{release}"; known are {release_names}')
    return RELEASES.index(release)
