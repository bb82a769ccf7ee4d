"""Tests of quotas on topic changes (KIP-599, Q-18), and of connection limits (W-12) and rates (W-13, KIP-612), over a socket."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafkaproto.conformance.client import Connection
from kafkaproto.conformance.needs import MAX_IDLE_MS
from kafkaproto.conformance.scene import UNTIL_KNOWN_MS, limited, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.metadata import MetadataRequest

RATE = 1.0
BURST = 11
"""The number of tokens in the full bucket of a client with a quota of one partition per second. Each created or deleted partition costs a token.

A bucket holds the tokens of `controller.quota.window.num` windows, by default 11 windows of a second.
"""
BROKER, SET, DELETE = 4, 0, 1
MUTATIONS = "controller_mutation_rate"


# ---- controller mutations ----------------------------------------------------------------------------------------------------


def created(
    subject: Subject, connection: Connection, version: int, *partitions: int
) -> tuple[list[str], list[int], int]:
    """Create topics with the given partition counts. Returns (names, error codes, throttle time in ms)."""
    names = [subject.new_name() for _ in partitions]
    topics = [CreatableTopic(name, count, 1) for name, count in zip(names, partitions, strict=True)]
    response = subject.ask(connection, CreateTopicsRequest(topics, 10_000), version)
    codes = {topic.name: topic.error_code for topic in response.topics}
    return names, [codes[name] for name in names], int(response.throttle_time_ms)


@contextmanager
def mutating(subject: Subject) -> Iterator[Connection]:
    """Yield a connection whose client may create one partition per second."""
    client_id = subject.new_name("maker")
    with limited(subject, ({"client-id": client_id}, {MUTATIONS: RATE})):
        yield subject.connect(0, client_id)


def about(subject: Subject, actual_ms: int, expected: int) -> bool:
    """Return whether a throttle time, `actual_ms`, is close enough to the expected time, `expected`, in ms.

    The throttle time may be up to `Subject.jitter_ms` longer than expected. It may also be shorter, by up to ten times `Subject.clock_slack_ms`: the
    client gains one token per second, so it needs a shorter throttle time if the test runs slowly on a real clock.
    """
    return expected - subject.clock_slack_ms * 10 <= actual_ms <= expected + subject.jitter_ms


@pytest.mark.needs(at_least={"connections.max.idle.ms": MAX_IDLE_MS})
@pytest.mark.rule("Q-18")
def test_create_topics_from_version_6_rejects_topics_above_the_mutation_quota(subject: Subject) -> None:
    """The client has 11 tokens, and each new partition costs a token. The request has four topics of 5 partitions.

    Three topics are created, because one remaining token is enough for a topic. No token is left for the fourth topic, which is rejected with error
    THROTTLING_QUOTA_EXCEEDED (89).
    """
    with mutating(subject) as connection:
        begun_ms = subject.now_ms()
        names, codes, throttle_ms = created(subject, connection, 6, 5, 5, 5, 5)
        assert codes == [0, 0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        assert about(subject, throttle_ms, (15 - BURST) * 1000)
        topics = subject.ask_once(MetadataRequest(None), subject.metadata_version).topics
        assert names[3] not in {topic.name for topic in topics}
        # Muted like any throttled client, and served afterwards.
        subject.ask(connection, ApiVersionsRequest(), 0)
        muted_ms = subject.now_ms() - begun_ms
        assert muted_ms >= throttle_ms - subject.early_ms - subject.jitter_ms - subject.clock_slack_ms


@pytest.mark.needs(at_least={"connections.max.idle.ms": MAX_IDLE_MS})
@pytest.mark.rule("Q-22")
def test_client_that_had_a_nan_mutation_quota_is_not_throttled_by_a_later_quota(subject: Subject) -> None:
    client_id = subject.new_name("maker")
    connection = subject.connect(0, client_id)
    for rate in (math.nan, RATE):
        with limited(subject, ({"client-id": client_id}, {MUTATIONS: rate})):
            for _ in range(2):
                _, codes, throttle_ms = created(subject, connection, 6, 15)
                assert (codes, throttle_ms) == ([0], 0)


@pytest.mark.rule("Q-18")
def test_create_topics_before_version_6_is_executed_and_then_throttled(subject: Subject) -> None:
    with mutating(subject) as connection:
        _, codes, throttle_ms = created(subject, connection, 5, 5, 5, 5, 5)
        assert codes == [0, 0, 0, 0]
        assert about(subject, throttle_ms, (20 - BURST) * 1000)


@pytest.mark.rule("Q-18")
@pytest.mark.parametrize(("version", "refused"), [(5, True), (4, False)])
def test_delete_topics_charges_the_partitions_of_the_deleted_topics(
    subject: Subject, version: int, refused: bool
) -> None:
    topics = [new_topic(subject, 8).name for _ in range(3)]
    with mutating(subject) as connection:
        request = DeleteTopicsRequest(topic_names=topics, timeout_ms=10_000)
        response = subject.ask(connection, request, version)
        codes = [result.error_code for result in response.responses]
        assert sorted(codes) == sorted([0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED if refused else 0])
        assert about(subject, response.throttle_time_ms, ((16 if refused else 24) - BURST) * 1000)


@pytest.mark.rule("Q-18")
@pytest.mark.parametrize(("version", "refused"), [(3, True), (2, False)])
def test_create_partitions_counts_each_new_partition_against_the_mutation_quota(
    subject: Subject, version: int, refused: bool
) -> None:
    topics = [new_topic(subject).name for _ in range(3)]
    with mutating(subject) as connection:
        expected = [CreatePartitionsTopic(name, 9, None) for name in topics]
        response = subject.ask(connection, CreatePartitionsRequest(expected, 10_000), version)
        codes = [result.error_code for result in response.results]
        assert sorted(codes) == sorted([0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED if refused else 0])
        assert about(subject, response.throttle_time_ms, ((16 if refused else 24) - BURST) * 1000)


@pytest.mark.rule("Q-18")
def test_mutation_quota_tokens_refill_over_time_separately_for_each_client(subject: Subject) -> None:
    with mutating(subject) as connection:
        _, codes, throttle_ms = created(subject, connection, 7, 12)
        assert codes == [0] and throttle_ms == 0  # the tokens are negative, but the request was not rejected
        second_connection = subject.connect(0, connection.client_id)
        _, codes, throttle_ms = created(subject, second_connection, 7, 1)
        assert codes == [ErrorCode.THROTTLING_QUOTA_EXCEEDED] and about(subject, throttle_ms, 1000)
        _, codes, throttle_ms = created(subject, subject.connect(0, "free"), 7, 12)
        assert (codes, throttle_ms) == ([0], 0)
        subject.pass_ms(1000)
        _, codes, _ = created(subject, subject.connect(0, connection.client_id), 7, 1)
        assert codes == [0]


# ---- connections -------------------------------------------------------------------------------------------------------------


@contextmanager
def broker_settings(subject: Subject, **settings: str) -> Iterator[None]:
    """Return a context in which broker 0 has these dynamic settings. They are deleted at the end of the context.

    settings: maps the names of settings, with underscores instead of dots, to values.
    """
    texts = {name.replace("_", "."): value for name, value in settings.items()}

    def change(operation: int) -> None:
        configs = [AlterableConfig(name, operation, value) for name, value in texts.items()]
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER, "0", configs)])
        [result] = subject.ask_once(request, 1).responses
        assert result.error_code == 0, result.error_message
        subject.pass_ms(UNTIL_KNOWN_MS)

    change(SET)
    try:
        yield
    finally:
        change(DELETE)


def served(subject: Subject, connection: Connection, within_ms: float = 400) -> bool:
    """Send an ApiVersions request, and return whether its response arrives within `within_ms`. Raises Closed if the broker closes the connection."""
    subject.send(connection, ApiVersionsRequest(), 0)
    return subject.answer_or_none(connection, within_ms) is not None


@pytest.mark.rule("W-12")
def test_connections_above_max_connections_per_ip_are_closed_immediately(subject: Subject) -> None:
    address = "127.0.0.12"
    with broker_settings(subject, max_connections_per_ip_overrides=f"{address}:2"):
        first, second = (subject.connect(0, address=address) for _ in range(2))
        assert served(subject, first) and served(subject, second)
        assert subject.closed(subject.connect(0, address=address), 1000)
        assert served(subject, subject.connect(0))  # from another address
        assert served(subject, first)
        second.close()
        subject.pass_ms(UNTIL_KNOWN_MS)
        assert served(subject, subject.connect(0, address=address))


@pytest.mark.rule("W-13")
def test_connections_above_the_ip_connection_rate_are_delayed_and_then_closed(subject: Subject) -> None:
    """The limit is one connection per second, measured over ten seconds. So the broker serves ten connections from an address at once.

    The broker delays the eleventh connection by up to a second, and then closes it without a response. Connections from other addresses are served.
    """
    address = "127.0.0.13"
    with limited(subject, ({"ip": address}, {"connection_creation_rate": 1.0})):
        for _ in range(10):
            assert served(subject, subject.connect(0, address=address))
        for _ in range(2):  # the rejected connection was not counted, so the next one is rejected too
            begun = subject.now_ms()
            delayed_connection = subject.connect(0, address=address)
            assert subject.closed(delayed_connection, 2000)
            assert subject.now_ms() - begun <= 1000 + subject.slack_ms
        assert served(subject, subject.connect(0, address="127.0.0.14"))
        subject.pass_ms(12_000 if not subject.clock_slack_ms else 0)
        if not subject.clock_slack_ms:
            assert served(subject, subject.connect(0, address=address))


@pytest.mark.rule("W-13")
def test_connections_above_max_connection_creation_rate_are_delayed_up_to_1_second(subject: Subject) -> None:
    """Each connection above max.connection.creation.rate is delayed by at most a second, and then served."""
    with broker_settings(subject, max_connection_creation_rate="1"):
        waited = []
        for _ in range(14):
            begun = subject.now_ms()
            assert served(subject, subject.connect(0), 5000)
            waited.append(subject.now_ms() - begun)
        assert max(waited) >= 500
        assert max(waited) <= 1000 + subject.slack_ms + 200
