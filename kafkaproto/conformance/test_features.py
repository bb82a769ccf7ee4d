"""Tests of the features of a cluster: their levels in ApiVersions responses, and changes of the levels with UpdateFeatures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

FIRST_WITH_FEATURES = 3
LEVELS_OF_3_9 = {"metadata.version": (1, 21), "kraft.version": (0, 1)}
LEVELS_OF_4_2 = {
    "metadata.version": (7, 29),
    "kraft.version": (0, 1),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}


def offered(subject: Subject, version: int = 4) -> Any:
    request = ApiVersionsRequest("a", "1") if version >= FIRST_WITH_FEATURES else ApiVersionsRequest()
    return subject.ask_once(request, version)


def supported(response: Any) -> dict[str, tuple[int, int]]:
    return {f.name: (f.min_version, f.max_version) for f in response.supported_features}


def finalized(response: Any) -> dict[str, int]:
    assert all(f.min_version_level == f.max_version_level for f in response.finalized_features)
    return {f.name: f.max_version_level for f in response.finalized_features}


@pytest.mark.rule("AD-22", "AD-23")
@pytest.mark.parametrize(
    ("levels", "in_use"),
    [
        pytest.param(LEVELS_OF_3_9, {"metadata.version": 21}, marks=pytest.mark.releases("3.9", "4.0"), id="3.9"),
        pytest.param(
            LEVELS_OF_4_2,
            {name: highest for name, (_, highest) in LEVELS_OF_4_2.items() if name != "kraft.version"},
            marks=pytest.mark.releases("4.2"),
            id="4.2",
        ),
    ],
)
def test_api_versions_response_has_the_features_of_the_cluster(
    subject: Subject, levels: dict[str, tuple[int, int]], in_use: dict[str, int]
) -> None:
    for version in range(5):
        response = offered(subject, version)
        if version < FIRST_WITH_FEATURES:
            assert (supported(response), finalized(response), response.finalized_features_epoch) == ({}, {}, -1)
            continue
        features = (
            levels if version > FIRST_WITH_FEATURES else {n: limits for n, limits in levels.items() if limits[0] > 0}
        )
        assert (supported(response), finalized(response)) == (features, in_use)
        assert response.finalized_features_epoch > 0 and not response.zk_migration_ready


@pytest.mark.rule("AD-22")
def test_finalized_features_epoch_grows_when_a_topic_is_created(subject: Subject) -> None:
    epoch = offered(subject).finalized_features_epoch
    new_topic(subject)
    wait_until(
        subject,
        lambda: offered(subject).finalized_features_epoch > epoch,
        f"the epoch of the finalized features is above {epoch}",
    )


@pytest.mark.rule("AD-22", "AD-25")
@pytest.mark.needs("metadata.max.idle.interval.ms")
def test_finalized_features_epoch_grows_every_500_ms_without_any_change(subject: Subject) -> None:
    """The controller adds a no-op record to the metadata log every 500 ms, as the profile `default` sets it."""
    epoch = offered(subject).finalized_features_epoch
    subject.pass_ms(2_000)
    assert offered(subject).finalized_features_epoch >= epoch + 3


# ---- changes of levels -----------------------------------------------------------------------------------------------------------

INVALID_CONFIG, INVALID_UPDATE, UNSUPPORTED_VERSION = 40, 95, 35
UPGRADE, SAFE, UNSAFE, UNKNOWN_TYPE = 1, 2, 3, 4
METADATA, KRAFT, TRANSACTION, GROUP = "metadata.version", "kraft.version", "transaction.version", "group.version"
ELIGIBLE_LEADERS, MIN_INSYNC = "eligible.leader.replicas.version", "min.insync.replicas"
ALL_FAILED = "The update failed for all features since the following feature had an error: "
NO_TYPE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)
LOSES = "Refusing to perform the requested downgrade because it might delete metadata information."
CANNOT_LOSE = "Unsafe metadata downgrade is not supported in this version."
Update = tuple[str, int, int]
"""A change for UpdateFeatures: (feature, new level, upgrade type)."""


def update(subject: Subject, *updates: Update, version: int = 1, validate_only: bool = False) -> Any:
    """Send UpdateFeatures and return the response. updates: (feature, new level, upgrade type) of each change.

    Version 0 of the request has neither upgrade types nor `validate_only`; with this version, the upgrade types in `updates` are ignored.
    """
    keys = [
        FeatureUpdateKey(name, level) if version == 0 else FeatureUpdateKey(name, level, upgrade_type=kind)
        for name, level, kind in updates
    ]
    return subject.ask_once(UpdateFeaturesRequest(60_000, keys, validate_only), version)


def change(subject: Subject, feature: str, level: int, kind: int) -> None:
    """Change the level of a feature, and wait until every broker reports the new level. kind: the upgrade type of the request."""
    response = update(subject, (feature, level, kind))
    assert [response.error_code, *(r.error_code for r in response.results)] == [0, 0]
    wait_until(
        subject, lambda: in_force(subject, feature) == {level}, f"every broker reports level {level} of {feature}"
    )


def in_force(subject: Subject, feature: str) -> set[int]:
    """Return the levels of a feature that the brokers report. The set has more than one level until every broker has applied a change."""
    request = ApiVersionsRequest("a", "1")
    responses = [subject.ask_once(request, 4, broker_id) for broker_id in range(len(subject.bootstrap))]
    return {finalized(response).get(feature, 0) for response in responses}


@pytest.fixture
def levels(subject: Subject) -> Iterator[dict[str, int]]:
    """Yield the finalized level of each feature of the cluster, and restore these levels after the test."""
    before = finalized(offered(subject))
    yield before
    now = finalized(offered(subject))
    for feature in {*before, *now}:
        level, current = before.get(feature, 0), now.get(feature, 0)
        if level != current:
            change(subject, feature, level, UPGRADE if level > current else SAFE)


def controller(subject: Subject) -> int:
    """Return the broker id of the controller, which some error messages contain."""
    partition = DescribeQuorumRequestTopicData("__cluster_metadata", [DescribeQuorumRequestPartitionData(0)])
    response = subject.ask_once(DescribeQuorumRequest([partition]), 0)
    return int(response.topics[0].partitions[0].leader_id)


def invalid(feature: str, level: int, reason: str) -> str:
    return f"Invalid update version {level} for feature {feature}. {reason}"


@pytest.mark.releases("3.9", "4.0")
@pytest.mark.rule("AD-19", "AD-20", "AD-21", "SN-69")
def test_update_features_before_4_0_returns_a_result_for_each_feature(subject: Subject) -> None:
    local = f"Local controller {controller(subject)}"
    below_zero = invalid("bar", -1, "A feature version cannot be less than 0.")
    for version in (0, 1):
        response = update(subject, (METADATA, 99, 1), ("foo", 1, 1), ("bar", -1, 1), (KRAFT, 0, 1), version=version)
        assert (response.error_code, response.error_message) == (0, "")
        assert sorted((r.feature, r.error_code, r.error_message) for r in response.results) == [
            ("bar", INVALID_UPDATE, below_zero),
            ("foo", INVALID_UPDATE, invalid("foo", 1, f"{local} does not support this feature.")),
            (KRAFT, 0, None),
            (METADATA, INVALID_UPDATE, invalid(METADATA, 99, f"{local} only supports versions 1-21")),
        ]
        assert update(subject, version=version).results == []
        [unknown] = update(subject, ("foo", 0, 1), version=version).results
        assert (unknown.error_code, unknown.error_message) == (0, None)
        [repeated] = update(subject, (METADATA, 99, 1), (METADATA, 21, 1), version=version).results
        assert (repeated.error_code, repeated.error_message) == (0, None)


@pytest.mark.releases("4.2")
@pytest.mark.rule("AD-19", "AD-20", "AD-21", "SN-69")
def test_update_features_changes_all_features_or_none_from_4_0_on(subject: Subject, levels: dict[str, int]) -> None:
    local = f"Local controller {controller(subject)}"
    for version in subject.served(ApiKey.UPDATE_FEATURES, (0, 1, 2)):
        for updates, message in (
            ([("foo", 1, 1), (KRAFT, 0, 1)], invalid("foo", 1, f"{local} does not support this feature.")),
            ([("foo", 0, 1)], invalid("foo", 0, "Feature foo not found.")),
            ([(METADATA, 99, 1)], invalid(METADATA, 99, f"{local} only supports versions 7-29")),
            ([(TRANSACTION, 3, 1)], invalid(TRANSACTION, 3, f"{local} only supports versions 0-2")),
            ([(TRANSACTION, -1, 1)], invalid(TRANSACTION, -1, "A feature version cannot be less than 0.")),
            ([(GROUP, 0, 1)], invalid(GROUP, 0, NO_TYPE)),
        ):
            response = update(subject, *updates, version=version)
            assert (response.error_code, response.error_message) == (INVALID_UPDATE, ALL_FAILED + message)
            assert response.results == []
        response = update(subject, (METADATA, 29, 1), (METADATA, 29, 1), version=version)
        assert (response.error_code, response.error_message) == (0, None)
        results = [(r.feature, r.error_code, r.error_message) for r in response.results]
        assert results == ([(METADATA, 0, "NONE")] * 2 if version < 2 else [])
        assert update(subject, version=version).error_message is None
    assert update(subject, (GROUP, 0, SAFE), ("foo", 1, UPGRADE)).error_code == INVALID_UPDATE
    assert finalized(offered(subject)) == levels


@pytest.mark.releases("4.2")
@pytest.mark.rule("AD-20", "AD-21")
def test_update_features_error_for_two_bad_features_does_not_depend_on_their_order(subject: Subject) -> None:
    local = f"Local controller {controller(subject)}"
    unknown = invalid("nope", 1, f"{local} does not support this feature.")
    too_high = invalid(METADATA, 99, f"{local} only supports versions 7-29")
    updates: list[Update] = [(METADATA, 99, UPGRADE), ("nope", 1, UPGRADE)]
    for ordered in (updates, updates[::-1]):
        response = update(subject, *ordered, validate_only=True)
        assert (response.error_code, response.error_message) == (INVALID_UPDATE, ALL_FAILED + unknown)
    response = update(subject, (METADATA, 99, UPGRADE), ("foo", 0, UPGRADE), ("test.feature.version", 0, UPGRADE))
    assert response.error_message == ALL_FAILED + too_high
    for feature in ("test.feature.version", "unit.test.feature.version.7"):
        assert error_of(update(subject, (feature, 0, UPGRADE), validate_only=True)) == (0, None)


def error_of(response: Any) -> tuple[int, str | None]:
    """Return (error code, message) of an UpdateFeatures response for one feature.

    Before 4.0, code and message are in the result of the feature; from 4.0 on, they are at the top of the response. The message is None if there is
    no error.
    """
    if response.error_code:
        return response.error_code, response.error_message.removeprefix(ALL_FAILED)
    [result] = response.results
    return result.error_code, result.error_message if result.error_code else None


@pytest.mark.rule("AD-20", "SN-69")
@pytest.mark.parametrize(
    ("top", "lowest", "lost"),
    [
        pytest.param(21, 17, "Invalid metadata.version {1}. ", marks=pytest.mark.releases("3.9", "4.0"), id="3.9"),
        pytest.param(
            29,
            23,
            "Unsupported metadata.version downgrade from {0} to {1}. ",
            marks=pytest.mark.releases("4.2"),
            id="4.2",
        ),
    ],
)
def test_update_features_rejects_upgrades_to_lower_and_downgrades_to_higher_levels(
    subject: Subject, levels: dict[str, int], top: int, lowest: int, lost: str
) -> None:
    def validated(level: int, kind: int) -> tuple[int, str | None]:
        return error_of(update(subject, (METADATA, level, kind), validate_only=True))

    wrong_type = invalid(METADATA, top, "The controller does not support the given upgrade type.")
    for kind in (0, UNKNOWN_TYPE, -1):
        assert validated(top, kind) == (INVALID_UPDATE, wrong_type)
    for kind in (UPGRADE, SAFE, UNSAFE):
        assert validated(top, kind) == (0, None)
    assert validated(top - 1, UPGRADE) == (INVALID_UPDATE, invalid(METADATA, top - 1, NO_TYPE))
    for kind, reason in ((SAFE, LOSES), (UNSAFE, CANNOT_LOSE)):
        assert validated(lowest, kind) == (0, None)
        assert validated(lowest - 1, kind) == (INVALID_UPDATE, lost.format(top, lowest - 1) + reason)
    newer = update(subject, (KRAFT, 1, SAFE), validate_only=True)
    assert error_of(newer) == (INVALID_UPDATE, invalid(KRAFT, 1, "Can't downgrade to a newer version."))
    assert finalized(offered(subject)) == levels


@pytest.mark.rule("AD-20")
@pytest.mark.releases("3.9", "4.0")
def test_metadata_version_cannot_be_downgraded_below_3_3_iv0(subject: Subject) -> None:
    for level in (1, 3):
        text = f"Invalid metadata.version {level}. Unable to set a metadata.version less than 3.3-IV0"
        for kind in (SAFE, UNSAFE):
            response = update(subject, (METADATA, level, kind), validate_only=True)
            assert error_of(response) == (INVALID_UPDATE, text)
        response = update(subject, (METADATA, level, UPGRADE), validate_only=True)
        assert error_of(response) == (INVALID_UPDATE, invalid(METADATA, level, NO_TYPE))
    response = update(subject, (METADATA, 4, SAFE), validate_only=True)
    assert error_of(response) == (INVALID_UPDATE, f"Invalid metadata.version 4. {LOSES}")


@pytest.mark.rule("AD-22", "SN-69")
def test_changed_feature_level_is_in_the_next_api_versions_response(subject: Subject, levels: dict[str, int]) -> None:
    epoch, level = offered(subject).finalized_features_epoch, levels[METADATA] - 2
    change(subject, METADATA, level, SAFE)
    response = offered(subject)
    assert finalized(response) == levels | {METADATA: level} and response.finalized_features_epoch > epoch
    response = update(subject, (METADATA, levels[METADATA], UPGRADE), version=0)
    assert error_of(response) == (0, None)
    wait_until(
        subject, lambda: finalized(offered(subject)) == levels, f"the finalized features have the levels {levels}"
    )


@pytest.mark.releases("3.9", "4.0")
@pytest.mark.rule("AD-27")
def test_directory_ids_of_voters_in_describe_quorum_are_zero_uuids_before_kafka_4_0(
    subject: Subject, levels: dict[str, int]
) -> None:
    change(subject, KRAFT, 1, UPGRADE)
    assert finalized(offered(subject)) == levels | {KRAFT: 1}
    partition = DescribeQuorumRequestTopicData("__cluster_metadata", [DescribeQuorumRequestPartitionData(0)])
    response = subject.ask_once(DescribeQuorumRequest([partition]), 2)
    assert [v.replica_directory_id for v in response.topics[0].partitions[0].current_voters] == [bytes(16)]
    assert error_of(update(subject, (KRAFT, 0, UPGRADE))) == (INVALID_UPDATE, invalid(KRAFT, 0, NO_TYPE))
    change(subject, KRAFT, 0, SAFE)


@pytest.mark.releases("4.2")
@pytest.mark.rule("AD-36")
def test_finalized_features_omit_a_feature_with_level_0(subject: Subject, levels: dict[str, int]) -> None:
    for feature, level in ((TRANSACTION, 1), (TRANSACTION, 0), ("share.version", 0), ("streams.version", 0)):
        change(subject, feature, level, SAFE)
        assert finalized(offered(subject)).get(feature, 0) == level
    assert TRANSACTION not in finalized(offered(subject))


@pytest.mark.releases("4.2")
@pytest.mark.rule("AD-36", "GN-1")
def test_feature_group_version_0_disables_the_consumer_group_protocol_of_kip_848(
    subject: Subject, levels: dict[str, int]
) -> None:
    def errors() -> Sequence[int]:
        group_id = subject.new_name("group")
        join = ConsumerGroupHeartbeatRequest(group_id, "m1", 0, None, None, 10_000, ["t"], topic_partitions=[])
        heartbeat = subject.ask_once(join, 1)
        groups = subject.ask_once(ConsumerGroupDescribeRequest([group_id]), 1).groups
        return heartbeat.error_code, *(g.error_code for g in groups)

    change(subject, GROUP, 0, SAFE)
    assert errors() == (UNSUPPORTED_VERSION, UNSUPPORTED_VERSION)
    assert {ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE} <= {
        key.api_key for key in offered(subject).api_keys
    }
    change(subject, GROUP, 1, UPGRADE)
    assert UNSUPPORTED_VERSION not in errors()


def alter_min_insync(subject: Subject, broker: str, value: str | None) -> tuple[int, str | None]:
    """Set `min.insync.replicas` dynamically. Returns (error code, message).

    broker: a broker id as text, or "" for all brokers. value: the new value; None deletes the setting.
    """
    changed = AlterableConfig(MIN_INSYNC, 0 if value else 1, value)
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(4, broker, [changed])])
    [response] = subject.ask_once(request, 1).responses
    return response.error_code, response.error_message


def min_insync(subject: Subject, broker: str) -> list[tuple[str | None, int]]:
    """Return the synonyms of `min.insync.replicas` as (value, source), the effective value first.

    broker: a broker id as text, or "" for the default of all brokers. A source is a config source, as DescribeConfigs numbers it.
    """
    request = DescribeConfigsRequest([DescribeConfigsResource(4, broker, [MIN_INSYNC])], include_synonyms=True)
    return [(s.value, s.source) for c in subject.ask_once(request, 4).results[0].configs for s in c.synonyms]


@pytest.mark.releases("4.2")
@pytest.mark.rule("AD-36")
def test_min_insync_replicas_cannot_be_set_per_broker_while_elr_is_enabled(
    subject: Subject, levels: dict[str, int]
) -> None:
    of_broker, of_all, default = 2, 3, 5
    altered = INVALID_CONFIG, f"Broker-level {MIN_INSYNC} cannot be altered while ELR is enabled."
    removed = INVALID_CONFIG, f"Cluster-level {MIN_INSYNC} cannot be removed while ELR is enabled."
    assert (alter_min_insync(subject, "0", "2"), alter_min_insync(subject, "", None)) == (altered, removed)
    assert min_insync(subject, "") == [("1", of_all)]
    change(subject, ELIGIBLE_LEADERS, 0, SAFE)
    assert min_insync(subject, "") == [("1", of_all)]
    assert (alter_min_insync(subject, "0", "2"), alter_min_insync(subject, "", None)) == ((0, None), (0, None))
    wait_until(
        subject,
        lambda: min_insync(subject, "0") == [("2", of_broker), ("1", default)],
        f"broker 0 has the value of {MIN_INSYNC} that was set for this broker",
    )
    change(subject, ELIGIBLE_LEADERS, 1, UPGRADE)
    wait_until(
        subject,
        lambda: min_insync(subject, "0") == [("1", of_all), ("1", default)],
        f"broker 0 has the value of {MIN_INSYNC} that was set for all brokers",
    )
    assert (alter_min_insync(subject, "0", "2"), alter_min_insync(subject, "", None)) == (altered, removed)
