"""Tests of client telemetry (KIP-714): subscriptions to client metrics, and the metrics that clients push.

The tests do not need a broker with a plugin that receives the metrics.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from kafkaproto.conformance.client import Connection
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.list_config_resources import ListConfigResourcesRequest
from kafkaproto.messages.push_telemetry import PushTelemetryRequest
from kafkaproto.records.checksum import crc32c

OK, COMPRESSION, INVALID, DAMAGED, THROTTLED, UNKNOWN_SUBSCRIPTION, TOO_LARGE = 0, 76, 42, 87, 89, 117, 118
NO_ID, ID_OF_KAFKA = bytes(16), bytes(15) + b"\1"
NONE, GZIP = 0, 1
CLIENT_METRICS, SET, DELETE = 16, 0, 1
APPLIES_WITHIN_MS = 500
"""The time in ms that a broker may take to apply a changed client metrics subscription."""
INTERVAL_MS = 1000
DEFAULT_INTERVAL_MS = 300_000
MAX_BYTES = 1024 * 1024
METRICS = b"metrics"
ORDERED_METRICS = [
    *("n7.", "admin.", "n8.", "n5.", "n6.", "n3.", "n4.", "n1.", "n2."),
    *("consumer.fetch.", "n0.", "producer.", "consumer.coordinator.", "x"),
]
BY_RELEASE = pytest.mark.parametrize(
    "error",
    [
        pytest.param(THROTTLED, marks=pytest.mark.releases("3.9", "4.0"), id="3.9"),
        pytest.param(OK, marks=pytest.mark.releases("4.2"), id="4.2"),
    ],
)


class Pushing:
    """A client with its own connection, for a test that requests a telemetry subscription and pushes metrics."""

    def __init__(self, subject: Subject, client_id: str | None = "pushing", address: str | None = None) -> None:
        self.subject = subject
        self.connection: Connection = subject.connect(0, client_id, address)
        self.instance_id = NO_ID
        self.subscription_id = 0

    def name_software(self, name: str, version: str) -> None:
        assert self.subject.ask(self.connection, ApiVersionsRequest(name, version), 3).error_code == 0

    def get(self) -> GetTelemetrySubscriptionsResponse:
        """Request the client's telemetry subscription and return the response.

        If the response has no error, this object stores the client instance id and the subscription id from it.
        """
        request = GetTelemetrySubscriptionsRequest(self.instance_id)
        response: GetTelemetrySubscriptionsResponse = self.subject.ask(self.connection, request, 0)
        if response.error_code == 0:
            self.instance_id, self.subscription_id = response.client_instance_id, response.subscription_id
        return response

    def push(
        self,
        metrics: bytes = METRICS,
        *,
        compression: int = NONE,
        terminating: bool = False,
        subscription_id: int | None = None,
    ) -> int:
        """Push metrics and return the error code. subscription_id: by default the subscription id that the client received last.

        metrics: the encoded metrics. compression: the number of the compression type. terminating: whether the client announces that it closes.
        """
        chosen = self.subscription_id if subscription_id is None else subscription_id
        request = PushTelemetryRequest(self.instance_id, chosen, terminating, compression, metrics)
        return int(self.subject.ask(self.connection, request, 0).error_code)

    def wait(self) -> None:
        """Let slightly more than the push interval pass."""
        self.subject.pass_ms(INTERVAL_MS + 50)


class Subscriptions:
    """The client metrics subscriptions that a test creates. They are deleted at the end of the test."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._keys: dict[str, set[str]] = {}

    def set(self, name: str = "first", **settings: str) -> None:
        """Change settings of the subscription `name`. The names of settings are written with underscores instead of dots."""
        changes = {key.replace("_", "."): value for key, value in settings.items()}
        self._keys.setdefault(name, set()).update(changes)
        self._alter(name, [AlterableConfig(key, SET, value) for key, value in changes.items()])
        self._subject.pass_ms(APPLIES_WITHIN_MS)

    def delete_all(self) -> None:
        for name, keys in self._keys.items():
            self._alter(name, [AlterableConfig(key, DELETE, None) for key in keys])
        if self._keys:
            self._subject.pass_ms(APPLIES_WITHIN_MS)

    def _alter(self, name: str, changes: list[AlterableConfig]) -> None:
        resource = AlterConfigsResource(CLIENT_METRICS, name, changes)
        [response] = self._subject.ask_once(IncrementalAlterConfigsRequest([resource], False), 1).responses
        assert response.error_code == 0, response


@pytest.fixture
def subscriptions(subject: Subject) -> Iterator[Subscriptions]:
    created = Subscriptions(subject)
    yield created
    created.delete_all()


@pytest.fixture
def client(subject: Subject, subscriptions: Subscriptions) -> Pushing:
    """Create a client metrics subscription with a push interval of 1 s, and return a client that has sent GetTelemetrySubscriptions once."""
    subscriptions.set(interval_ms=str(INTERVAL_MS), metrics="org.apache.kafka.")
    client = Pushing(subject)
    assert client.get().error_code == 0
    return client


@pytest.mark.rule("AD-10")
def test_telemetry_requests_succeed_although_api_versions_lists_no_telemetry_api(subject: Subject) -> None:
    client = Pushing(subject)
    offered = {api.api_key for api in subject.ask(client.connection, ApiVersionsRequest("test", "1"), 3).api_keys}
    assert not offered & {71, 72} and offered >= {68, 74}
    assert client.get().error_code == 0
    assert client.push() == OK


@pytest.mark.rule("AD-11")
def test_telemetry_client_without_subscription_gets_an_instance_id_but_no_metrics(subject: Subject) -> None:
    first, second = Pushing(subject), Pushing(subject)
    response = first.get()
    assert response.client_instance_id not in (NO_ID, ID_OF_KAFKA)
    assert (response.client_instance_id[6] >> 4, response.client_instance_id[8] >> 6) == (4, 2)  # a random UUID
    assert response.accepted_compression_types == [4, 3, 1, 2]
    assert response.push_interval_ms == DEFAULT_INTERVAL_MS
    assert response.telemetry_max_bytes == MAX_BYTES
    assert response.delta_temporality is True
    assert response.requested_metrics == []
    assert second.get().client_instance_id != response.client_instance_id


@pytest.mark.rule("AD-11", "AD-12")
def test_telemetry_response_repeats_the_client_instance_id_of_the_request(
    subject: Subject, subscriptions: Subscriptions
) -> None:
    client = Pushing(subject)
    client.instance_id = bytes.fromhex("5160 6601 ef5c 4f95 8c38 0487 918b 36be")
    assert client.get().client_instance_id == client.instance_id
    assert client.subscription_id == 2001223795  # the checksums are those of Kafka 3.9.1
    subscriptions.set(interval_ms="1000", metrics="org.apache.kafka.")
    assert client.get().client_instance_id == client.instance_id
    assert client.subscription_id == 1345120223


@pytest.mark.rule("AD-12")
def test_changing_a_telemetry_subscription_gives_the_client_a_new_subscription_id(
    subject: Subject, subscriptions: Subscriptions
) -> None:
    client, other_client = Pushing(subject), Pushing(subject)
    ids = [client.get().subscription_id, other_client.get().subscription_id]
    for settings in ({"metrics": "a."}, {"interval_ms": "2000"}, {"metrics": "b."}):
        subscriptions.set(**settings)
        ids.append(client.get().subscription_id)
    assert len(set(ids)) == len(ids)


@pytest.mark.rule("AD-12")
def test_telemetry_subscription_id_is_a_checksum_of_the_returned_metric_names(
    subject: Subject, subscriptions: Subscriptions
) -> None:
    names = ["consumer.fetch.", "producer.", "admin.", "consumer.coordinator.", "x", *(f"n{i}." for i in range(9))]
    subscriptions.set("one", metrics=",".join(names[:3]), interval_ms="1000")
    pushing = Pushing(subject)
    assert pushing.get().requested_metrics == ["producer.", "admin.", "consumer.fetch."]
    subscriptions.set("two", metrics=",".join(names[2:]), interval_ms="1000")
    client = Pushing(subject)
    response = client.get()
    assert response.requested_metrics == ORDERED_METRICS
    text = f"[{', '.join(response.requested_metrics)}]{response.push_interval_ms}"
    high, low = int.from_bytes(client.instance_id[:8]), int.from_bytes(client.instance_id[8:])
    expected = crc32c(text.encode()) ^ (high ^ low) >> 32 ^ (high ^ low)
    assert client.subscription_id & 0xFFFFFFFF == expected & 0xFFFFFFFF


@pytest.mark.rule("AD-13")
def test_telemetry_client_gets_the_metrics_of_all_matching_subscriptions(
    subject: Subject, subscriptions: Subscriptions
) -> None:
    subscriptions.set("one", metrics="b.,a.", interval_ms="5000", match="client_id=push.*")
    subscriptions.set("two", metrics="a.,c.", interval_ms="4000")
    subscriptions.set("three", metrics="d.", interval_ms="1000", match="client_id=push")
    client = Pushing(subject)
    response = client.get()
    assert (sorted(response.requested_metrics), response.push_interval_ms) == (["a.", "b.", "c."], 4000)
    subscriptions.set("two", metrics="*")
    response = client.get()
    assert (response.requested_metrics, response.push_interval_ms) == (["*"], 4000)


@pytest.mark.rule("AD-17")
@pytest.mark.releases("3.9", "4.0")
def test_telemetry_client_gets_empty_metric_prefixes_of_a_subscription_before_4_0(
    subject: Subject, subscriptions: Subscriptions
) -> None:
    client = Pushing(subject)
    for metrics, prefixes in (
        ("first.", ["first."]),
        ("", []),
        (",", [""]),
        (" ", []),
        (" ,", [""]),
        ("a,", ["", "a"]),
        ("a,a", ["a"]),
        (",b", ["", "b"]),
        (" a , b ", ["a", "b"]),
        ("*,", ["*"]),
    ):
        subscriptions.set(metrics=metrics, match="client_id=push.*")
        assert client.get().requested_metrics == prefixes, metrics


@pytest.mark.rule("AD-17")
@pytest.mark.releases("3.9", "4.0")
def test_telemetry_subscription_with_an_empty_pattern_is_not_applied_before_4_0(
    subject: Subject, subscriptions: Subscriptions
) -> None:
    client = Pushing(subject)
    subscriptions.set(metrics="applied.")
    subscriptions.set("new", metrics="new.", match="client_id=push.*,")
    assert client.get().requested_metrics == ["applied."]
    for pattern in (",", "client_id=push.*,,"):
        subscriptions.set(metrics="stored.", match=pattern)
        response = Pushing(subject).get()
        assert response.requested_metrics == ["applied."], pattern
    listed = subject.ask_once(ListConfigResourcesRequest(), 0).config_resources
    assert len(listed) == 1
    subscriptions.set(metrics="again.", match="client_id=push.*")
    assert client.get().requested_metrics == ["again."]


@pytest.mark.rule("AD-13")
def test_telemetry_subscription_is_selected_by_attributes_of_the_client(
    subject: Subject, subscriptions: Subscriptions
) -> None:
    client, unnamed = Pushing(subject), Pushing(subject, None)
    client.name_software("test-client", "1.2.3")
    client.get()
    metrics = {
        "name.": "client_software_name=test-.*,client_software_version=1\\.2\\..*",
        "address.": "client_source_address=127\\.0\\.0\\.1",
        "port.": "client_source_port=[0-9]+",
        "other.": "client_software_name=test",
        "both.": "client_id=pushing,client_software_name=unknown",
        "unknown.": "client_software_name=unknown,client_software_version=unknown",
        "any.": "client_id=.*",
    }
    for prefix, pattern in metrics.items():
        subscriptions.set(prefix, metrics=prefix, match=pattern)
    assert sorted(client.get().requested_metrics) == ["address.", "any.", "name.", "port."]
    assert sorted(unnamed.get().requested_metrics) == ["address.", "any.", "port.", "unknown."]


@pytest.mark.rule("AD-14", "SN-66")
def test_telemetry_subscription_request_within_the_push_interval_is_rejected(client: Pushing) -> None:
    response = client.get()
    assert (response.error_code, response.client_instance_id, response.push_interval_ms) == (THROTTLED, NO_ID, 0)
    assert (response.accepted_compression_types, response.requested_metrics) == ([], [])
    client.wait()
    assert client.get().error_code == OK
    client.wait()
    assert client.push() == OK
    assert client.get().error_code == THROTTLED


@pytest.mark.rule("AD-14")
def test_telemetry_client_can_request_a_changed_subscription_immediately(
    client: Pushing, subscriptions: Subscriptions
) -> None:
    subscriptions.set(metrics="changed.")
    assert client.push() == UNKNOWN_SUBSCRIPTION
    subscriptions.set(metrics="changed.again.")
    assert client.get().requested_metrics == ["changed.again."]


@pytest.mark.rule("AD-14")
@BY_RELEASE
def test_telemetry_subscription_can_be_requested_right_after_a_bad_push_from_4_0_on(
    client: Pushing, error: int
) -> None:
    client.wait()
    assert client.push(subscription_id=client.subscription_id + 1) == UNKNOWN_SUBSCRIPTION
    assert client.get().error_code == error
    client.wait()
    assert client.push(compression=9) == COMPRESSION
    assert client.get().error_code == error


@pytest.mark.rule("AD-15", "SN-66")
def test_telemetry_push_within_the_push_interval_is_rejected(client: Pushing) -> None:
    assert [client.push(), client.push()] == [OK, THROTTLED]
    client.wait()
    assert [client.push(), client.push(), client.push(terminating=True)] == [OK, THROTTLED, OK]


@pytest.mark.rule("AD-15", "SN-66")
def test_invalid_telemetry_push_is_rejected_and_restarts_the_push_interval(client: Pushing) -> None:
    too_large = bytes(MAX_BYTES + 1)
    expected = [
        ({"subscription_id": client.subscription_id + 1, "compression": 9}, UNKNOWN_SUBSCRIPTION),
        ({"compression": 9, "metrics": too_large}, COMPRESSION),
        ({"compression": -1}, COMPRESSION),
        ({"compression": GZIP, "metrics": too_large}, TOO_LARGE),
        ({"compression": GZIP, "metrics": METRICS}, DAMAGED),
        ({"compression": GZIP, "metrics": zlib.compress(METRICS, wbits=31)}, OK),
        ({"metrics": too_large[1:]}, OK),
        ({"compression": GZIP, "metrics": b""}, OK),
    ]
    for changes, error in expected:
        assert client.push(**changes) == error, changes  # type: ignore[arg-type]
        assert client.push() == THROTTLED
        client.wait()


@pytest.mark.rule("AD-15", "SN-66")
def test_telemetry_push_after_a_terminating_push_is_rejected(client: Pushing) -> None:
    assert client.push(terminating=True) == OK
    assert client.push(terminating=True) == INVALID
    assert client.push() == INVALID
    client.wait()
    assert client.push() == OK  # the last push, although rejected, was not terminating


@pytest.mark.rule("AD-15", "SN-66")
def test_telemetry_push_with_a_reserved_client_instance_id_is_rejected(client: Pushing) -> None:
    for reserved in (NO_ID, ID_OF_KAFKA):
        client.instance_id = reserved
        assert client.push() == INVALID


@pytest.mark.rule("AD-16")
@BY_RELEASE
def test_closing_a_connection_ends_the_throttling_of_a_telemetry_client_from_4_0_on(
    client: Pushing, error: int
) -> None:
    second = Pushing(client.subject)
    second.instance_id = client.instance_id
    assert second.get().error_code == THROTTLED
    client.connection.close()
    client.subject.pass_ms(200)
    assert second.get().error_code == error
