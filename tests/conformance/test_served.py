"""Versions and topic settings that a cluster lacks: their tests are not prepared. Offered versions are always sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.client import Closed
from kafkaproto.conformance.foreign import Foreign, brokers_at
from kafkaproto.conformance.offered import OFFERED_BY_3_9
from kafkaproto.conformance.release_range import ReleaseRange
from kafkaproto.conformance.scene import new_topic, read
from kafkaproto.conformance.semantics import KAFKA, KIP, semantics_of
from kafkaproto.conformance.served import NotServed, Served, release_of, restricted, unsupported_settings
from kafkaproto.conformance.wire import batch, batch_of_bytes, fetch, produce
from kafkaproto.messages.alter_client_quotas import AlterClientQuotasRequest
from kafkaproto.releases import Ranges, versions
from kafkaproto.testing import cluster
from tests.support.answering import answering


@contextmanager
def foreign(release: str, brokers: int = 1, **options: Any) -> Iterator[Foreign]:
    """Run a cluster of a release, and yield it as a foreign cluster of which only the address is known."""
    with cluster(brokers, release=release, clock="system", **options) as running:
        host, _, port = running.bootstrap_servers[0].rpartition(":")
        subject = Foreign(brokers_at([(host, int(port))], "kip"), "kip")
        yield subject
        subject.close_connections()


def not_prepared(reason: str) -> Any:
    """Expect that the test is skipped for exactly this reason."""
    return pytest.raises(pytest.skip.Exception, match=f"^not prepared: needs {re.escape(reason)}$")


@pytest.mark.parametrize(
    ("release", "request_", "version", "reason"),
    [
        ("2.0", fetch(), 11, "Fetch v11 (the broker serves 0 to 8)"),
        ("4.2", fetch(), 3, "Fetch v3 (the broker serves 4 to 18)"),
        ("2.0", AlterClientQuotasRequest([]), 1, "AlterClientQuotas v1 (the broker does not serve this API)"),
        ("4.2", produce("t", b""), 2, "Produce v2 (the broker serves 3 to 13)"),  # offered, never accepted: KAFKA-18659
    ],
)
def test_skip_reason_of_a_conformance_test_names_the_unsupported_api_version(
    release: str, request_: Any, version: int, reason: str
) -> None:
    with foreign(release) as subject, not_prepared(reason):
        subject.ask(subject.connect(), request_, version)


def test_conformance_test_fails_if_the_broker_rejects_an_api_version_that_it_offers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offered = versions("2.0") | {int(ApiKey.FETCH): (0, 11)}
    monkeypatch.setattr(Foreign, "_offered_by", lambda self, broker_id: offered)
    with foreign("2.0") as subject, pytest.raises(Closed):
        subject.ask(subject.connect(), fetch(), 11)


def test_conformance_suite_tries_every_version_if_the_broker_lists_no_api_versions() -> None:
    with answering(b"\0\0\0\2xx") as port:
        subject = Foreign([("127.0.0.1", port)], "kip")
        assert subject.served(ApiKey.FETCH, (0, 99)) == [0, 99] and subject.version(ApiKey.FETCH, 11, 5) == 11
        connection = subject.connect()
        assert connection.frame(fetch(), 11)
        assert subject.offered() == OFFERED_BY_3_9
        subject.close_connections()


@pytest.mark.parametrize("release", ["0.11", "2.0", "2.4", "3.9", "4.0", "4.2"])
def test_conformance_setup_creates_a_topic_with_a_record_on_kafka_0_11_to_kafka_4_2(release: str) -> None:
    with foreign(release) as subject:
        topic = new_topic(subject)
        topic.fill(batch(b"stored"))
        assert bytes(read(topic, 0).records).count(b"stored") == 1


def test_conformance_test_is_skipped_if_the_broker_lacks_a_required_api_version() -> None:
    with foreign("2.0") as subject:
        topic = new_topic(subject)
        with not_prepared("Fetch v11 (the broker serves 0 to 8)"):
            read(topic, 0, rack="r1")
        with not_prepared("Metadata v7 (the broker serves 0 to 6)"):
            assert topic.leader_epoch
        with not_prepared("Metadata v10 (the broker serves 0 to 6)"):
            assert topic.topic_id


def test_conformance_tests_use_the_supported_api_version_nearest_a_preferred_version() -> None:
    served = Served({int(ApiKey.FETCH): (4, 8)})
    assert [served.closest(ApiKey.FETCH, version) for version in (0, 5, 11)] == [4, 5, 8]
    assert served.closest(ApiKey.FETCH, 5, lowest=7) == 7
    with pytest.raises(NotServed, match=r"^Fetch v9 \(the broker serves 4 to 8\)$"):
        served.closest(ApiKey.FETCH, 11, lowest=9)
    with pytest.raises(NotServed, match=r"^Metadata v12 \(the broker does not serve this API\)$"):
        served.closest(ApiKey.METADATA, 12)


def test_conformance_suite_treats_produce_below_v3_as_unsupported_by_kafka_4_0() -> None:
    assert Served(versions("3.9")).serves(ApiKey.PRODUCE, 0)
    assert not Served(versions("4.0")).serves(ApiKey.PRODUCE, 2)
    assert Served(versions("4.0")).serves(ApiKey.PRODUCE, 3)


def lacking_fetch_17() -> Ranges:
    return restricted(versions("3.9")) | {int(ApiKey.FETCH): (0, 14)}


@pytest.mark.parametrize(
    ("offered", "release"),
    [
        (versions("2.0"), "2.0"),
        (versions("3.9"), "3.9"),
        (versions("4.2"), "4.2"),
        (OFFERED_BY_3_9, "3.9"),
        (lacking_fetch_17(), None),
        (None, None),
    ],
)
def test_cluster_release_is_detected_only_if_its_api_versions_match_a_kafka_release(
    offered: Ranges | None, release: str | None
) -> None:
    assert release_of(offered) == release


def test_cluster_whose_api_versions_match_no_release_is_tested_as_kafka_3_9(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Foreign, "_offered_by", lambda self, broker_id: lacking_fetch_17())
    assert Foreign([("127.0.0.1", 1)], "kip").offered() == OFFERED_BY_3_9


@pytest.mark.parametrize(
    ("release", "name", "value", "lacks"),
    [
        ("4.2", "segment.bytes", "300", "segment.bytes=300 (Kafka 4.0 and later accept 1048576 or more"),
        ("4.2", "segment.bytes", "1048576", None),
        ("3.9", "segment.bytes", "300", None),
        ("4.0", "message.downconversion.enable", "false", "topic setting message.downconversion.enable (Kafka 4.0 removed it"),
        ("3.9", "message.downconversion.enable", "false", None),
        ("2.0", "max.compaction.lag.ms", "1", "topic setting max.compaction.lag.ms (Kafka 2.3 added it"),
        ("2.3", "max.compaction.lag.ms", "1", None),
        ("2.0", "retention.ms", "-1", None),
    ],
)  # fmt: skip
def test_conformance_skip_reason_for_an_unsupported_topic_setting_names_the_releases(
    release: str, name: str, value: str, lacks: str | None
) -> None:
    expected = [] if lacks is None else [f"{lacks}; the cluster serves the versions of {release})"]
    assert unsupported_settings(release, {name: value}) == expected


def test_conformance_test_is_skipped_if_the_cluster_release_rejects_a_topic_setting() -> None:
    reason = "segment.bytes=300 (Kafka 4.0 and later accept 1048576 or more; the cluster serves the versions of 4.0)"
    with foreign("4.0") as subject, not_prepared(reason):
        new_topic(subject, segment_bytes="300")


def test_conformance_suite_sets_internal_segment_bytes_to_300_on_kafka_4_2() -> None:
    with foreign("4.2") as subject:
        topic = new_topic(subject, segment_bytes="300")
        topic.fill(*[batch_of_bytes(100)] * 4)
        assert [len(read(topic, 0).records), len(read(topic, 3).records)] == [300, 100]


def test_skip_reason_of_a_test_for_other_kafka_releases_names_the_required_releases() -> None:
    with foreign("3.9") as subject:
        subject.need_release(ReleaseRange("3.9", "4.0"))
        with not_prepared("Kafka 4.0 or later (the cluster serves the versions of 3.9)"):
            subject.need_release(ReleaseRange(first="4.0"))
        with not_prepared("Kafka 2.0 or later and before 3.9 (the cluster serves the versions of 3.9)"):
            subject.need_release(ReleaseRange("2.0", "3.9"))


@pytest.mark.parametrize(
    ("release", "configs"), [("4.2", {"cleanup_policy": "unknown"}), ("3.9", {"segment_bytes": "-9"})]
)
def test_conformance_test_fails_if_the_cluster_rejects_a_supported_topic_setting(
    release: str, configs: dict[str, Any]
) -> None:
    with foreign(release) as subject, pytest.raises(AssertionError, match="40"):
        new_topic(subject, **configs)


@pytest.mark.parametrize("release", ["2.0", "3.9", "4.2"])
@pytest.mark.parametrize("semantics", [KIP, KAFKA])
def test_conformance_suite_detects_if_a_broker_follows_kip_documents_or_kafka_code(
    release: str, semantics: str
) -> None:
    with foreign(release, semantics=semantics) as subject:
        assert semantics_of(subject) == semantics


def test_conformance_run_deletes_its_topics_on_clusters_of_every_release() -> None:
    for release in ("1.0", "2.0", "4.2"):
        with foreign(release) as subject:
            topic = new_topic(subject)
            subject.stop()
            assert topic.metadata().error_code == 3, release
