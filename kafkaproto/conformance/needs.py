"""Requirements that a test has on the cluster under test, and functions that find the requirements that a cluster does not meet.

A test declares its requirements with a marker:

    @pytest.mark.needs("fetch.max.bytes", racks=True)

A module can set this marker for all its tests with `pytestmark`. If a test in the module has its own marker, the requirements of both apply.
The positional arguments are names of broker settings. In the cluster, these settings must have the values that they have in the profile of the test's
module. A profile is a file of broker settings.

The marker has four keyword arguments. at_least: maps the name of a setting to the lowest sufficient value. brokers: the number of brokers needed. A
test that connects to every broker that it needs can omit `brokers`, because a connection to a missing broker skips the test. racks: whether broker N
must be in rack rN. offsets_topic: whether the cluster must have enough brokers for the replicas of the offsets topic. A test without the marker needs
one broker and no particular settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.subject import Subject, settings_of
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.metadata import MetadataRequest

MARKER = "needs(*settings, at_least=None, brokers=1, racks=False, offsets_topic=False): the settings of the profile that the test needs"
FETCH_MAX_BYTES = 8 * 1024 * 1024
"""The maximum number of bytes that any conformance test fetches at once."""
REQUEST_MAX_BYTES = 1024 * 1024
"""The maximum number of bytes that any conformance test sends in one request."""
SESSION_SLOTS = 100
"""The maximum number of fetch sessions that the conformance tests leave open."""
MAX_IDLE_MS = 60_000
"""The maximum time in ms for which any conformance test leaves a connection idle."""
BROKER = 4
OFFSETS_TOPIC_REPLICAS = "offsets.topic.replication.factor"
NONE = "(none)"


class Needs(NamedTuple):
    """The requirements of a test on a cluster.

    settings: maps the name of a broker setting to the required value. at_least: maps a name to the lowest sufficient value. brokers: the lowest
    number of brokers. racks: whether broker N must be in rack rN. offsets_topic: whether the brokers must be able to create the offsets topic.
    """

    settings: dict[str, str]
    at_least: dict[str, int]
    brokers: int
    racks: bool
    offsets_topic: bool = False


def needs_of(item: Any, profile: str) -> Needs:
    """Return the requirements that the markers `needs` of a test declare.

    item: the pytest item of the test. profile: the settings profile (a file of broker settings) from which the required values are taken. Raises
    ValueError if a marker names a setting that this profile does not have.
    """
    markers: Iterable[pytest.Mark] = item.iter_markers("needs")
    needs = Needs({}, {}, 1, False)
    values = settings_of(profile)
    for marker in markers:
        if unknown := [name for name in marker.args if name not in values]:
            raise ValueError(
                f"{item.nodeid}: the marker `needs` names settings that the profile {profile} does not set: {', '.join(unknown)}; "
                "remove them from the marker"
            )
        needs = Needs(
            needs.settings | {name: values[name] for name in marker.args},
            needs.at_least | marker.kwargs.get("at_least", {}),
            max(needs.brokers, marker.kwargs.get("brokers", 1)),
            needs.racks or marker.kwargs.get("racks", False),
            needs.offsets_topic or marker.kwargs.get("offsets_topic", False),
        )
    return needs


def missing(subject: Subject, needs: Needs) -> list[str]:
    """Return a text for each requirement that the cluster does not meet, with the actual value; an empty list if it meets all.

    The broker ids of the cluster must be 0, 1 and so on, without gaps. If they are not, the list has only one text, which names the ids.
    """
    version = subject.version(ApiKey.METADATA, 1, lowest=1)
    racks = {broker.node_id: broker.rack for broker in subject.ask_once(MetadataRequest([]), version).brokers}
    ids = list(range(max(needs.brokers, len(racks))))
    if sorted(racks) != ids:
        brokers = "a broker" if len(ids) == 1 else "brokers"
        return [f"{brokers} with the {_listed(ids)} (the cluster has the {_listed(sorted(racks))})"]
    unmet = []
    if needs.racks:
        misplaced_ids = [broker for broker, rack in sorted(racks.items()) if rack != f"r{broker}"]
        unmet += [f"broker.rack=r{broker} of broker {broker} (is {racks[broker] or NONE})" for broker in misplaced_ids]
    if needs.settings or needs.at_least:
        unmet += _missing_settings(needs, settings_in_force(subject, [*needs.settings, *needs.at_least]))
    if needs.offsets_topic:
        replicas = settings_in_force(subject, [OFFSETS_TOPIC_REPLICAS]).get(OFFSETS_TOPIC_REPLICAS)
        if int(replicas or 0) > len(racks):
            fix = "=1" if len(racks) == 1 else f" of {len(racks)} or less"
            unmet.append(f"{OFFSETS_TOPIC_REPLICAS}{fix} (is {replicas})")
    return unmet


def _missing_settings(needs: Needs, current: Mapping[str, str | None]) -> Iterator[str]:
    for name, value in needs.settings.items():
        if current.get(name) != value:
            yield f"{name}={value} (is {current.get(name) or NONE})"
    for name, lowest in needs.at_least.items():
        if int(current.get(name) or 0) < lowest:
            yield f"{name} of {lowest} or more (is {current.get(name) or NONE})"


def _listed(ids: Sequence[int]) -> str:
    *others, last = map(str, ids)
    return f"ids {', '.join(others)} and {last}" if others else f"id {last}"


def settings_in_force(subject: Subject, names: Iterable[str]) -> dict[str, str | None]:
    """Return the current values of these broker settings on broker 0, by name, as DescribeConfigs returns them.

    A value is None if the setting has none or is sensitive. A setting that the broker does not have is missing from the dict.
    """
    request = DescribeConfigsRequest([DescribeConfigsResource(BROKER, "0", list(names))])
    [resource] = subject.ask_once(request, subject.version(ApiKey.DESCRIBE_CONFIGS, 2)).results
    assert resource.error_code == 0, (resource.error_code, resource.error_message)
    return {config.name: config.value for config in resource.configs}
