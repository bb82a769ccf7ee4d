"""Clients that send metrics: when the broker forgets them, and which of their metrics a test can read."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.observe.telemetry_history import MOST_BYTES, MOST_PUSHES
from kafkaproto.broker.telemetry.instances import MOST_INSTANCES, ZERO_ID, ClientAttributes, TelemetryInstances
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kafkaproto.messages.push_telemetry import PushTelemetryRequest
from kafkaproto.records.compression import Compression, compress
from kafkaproto.testing import cluster

ENABLED = {"kafkaproto.client.telemetry.enable": "true"}
CLIENT = ClientAttributes("client", "unknown", "unknown", "127.0.0.1", "0")
THROTTLED = 89
DEFAULT_INTERVAL_MS, LONGEST_INTERVAL_MS = 300_000, 3_600_000


def instances(release: str = "3.9", **subscription: str) -> TelemetryInstances:
    config = ClusterConfig(release=release)
    if subscription:
        config.set_client_metrics("first", {name.replace("_", "."): text for name, text in subscription.items()})
    return TelemetryInstances(config.for_broker(0), Random(1))


def is_throttled(telemetry: TelemetryInstances, instance_id: bytes, now_ms: int) -> bool:
    try:
        telemetry.subscribe(instance_id, CLIENT, 1, now_ms)
    except KafkaError as error:
        return int(error.error_code) == THROTTLED
    return False


@pytest.mark.rule("AD-16")
@pytest.mark.parametrize(("interval_ms", "expires_ms"), [(1000, 60_000), (19_999, 60_000), (20_001, 60_003)])
def test_telemetry_client_expires_after_three_push_intervals_but_not_before_60_s(
    interval_ms: int, expires_ms: int
) -> None:
    telemetry = instances(interval_ms=str(interval_ms))
    first = telemetry.subscribe(ZERO_ID, CLIENT, 1, 0)
    again = telemetry.subscribe(first.client_instance_id, CLIENT, 1, expires_ms - 1)
    assert again is first
    later_ms = 2 * expires_ms - 1  # the request before has extended the life of the client
    assert telemetry.subscribe(first.client_instance_id, CLIENT, 1, later_ms) is not first


@pytest.mark.rule("AD-16")
def test_least_recently_used_telemetry_client_is_dropped_above_the_client_limit() -> None:
    telemetry = instances()
    oldest, second = (telemetry.subscribe(ZERO_ID, CLIENT, 1, 0).client_instance_id for _ in range(2))
    for _ in range(MOST_INSTANCES - 2):
        telemetry.subscribe(ZERO_ID, CLIENT, 1, 0)
    assert is_throttled(telemetry, oldest, 1)  # all fit, and this one is now the last used
    telemetry.subscribe(ZERO_ID, CLIENT, 1, 1)
    assert is_throttled(telemetry, oldest, 2)
    assert not is_throttled(telemetry, second, 2)


@pytest.mark.rule("AD-13")
def test_telemetry_push_interval_above_the_kafka_default_is_lowered_to_the_default() -> None:
    telemetry = instances(interval_ms=str(LONGEST_INTERVAL_MS), metrics="a.")
    instance = telemetry.subscribe(ZERO_ID, CLIENT, 1, 0)
    assert (instance.interval_ms, instance.metrics) == (DEFAULT_INTERVAL_MS, ("a.",))


@pytest.mark.rule("AD-11")
def test_get_telemetry_subscriptions_is_no_longer_throttled_after_a_broker_restart() -> None:
    virtual = VirtualCluster(1)
    instance_id = ask(virtual.connect(), GetTelemetrySubscriptionsRequest(ZERO_ID)).client_instance_id
    assert ask(virtual.connect(), GetTelemetrySubscriptionsRequest(instance_id)).error_code == THROTTLED
    virtual.state.stop_broker(0)
    virtual.state.start_broker(0)
    virtual.run()
    assert ask(virtual.connect(), GetTelemetrySubscriptionsRequest(instance_id)).error_code == 0


# ---- what a test reads -----------------------------------------------------------------------------------------------------------


def ask(client: MemoryClient, request: Any, version: int = 0) -> Any:
    return client.ask(request, version)


def pushing(virtual: VirtualCluster, metrics: bytes, compression: Compression = Compression.NONE) -> MemoryClient:
    """Return a new client that has pushed metrics."""
    client = virtual.connect(client_id="pushing")
    subscribed = ask(client, GetTelemetrySubscriptionsRequest(ZERO_ID))
    push = PushTelemetryRequest(
        subscribed.client_instance_id,
        subscribed.subscription_id,
        True,
        int(compression),
        compress(compression, metrics),
    )
    assert ask(client, push).error_code == 0
    return client


@pytest.mark.rule("AD-10")
def test_brokers_without_the_telemetry_setting_do_not_advertise_telemetry_apis() -> None:
    virtual = VirtualCluster(2, {"1.kafkaproto.client.telemetry.enable": "true"})
    apis = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    for broker_id, expected in ((0, set()), (1, apis)):
        response = ask(virtual.connect(broker_id), ApiVersionsRequest("test", "1"), 3)
        assert {api.api_key for api in response.api_keys} & apis == expected


@pytest.mark.rule("AD-10", "AD-37")
def test_broker_stores_telemetry_pushes_only_if_the_telemetry_setting_is_enabled() -> None:
    for settings, count in (({}, 0), (ENABLED, 1)):
        virtual = VirtualCluster(1, settings)
        pushing(virtual, b"metrics")
        assert len(virtual.state.telemetry_history.pushes()) == count


@pytest.mark.rule("AD-37")
@pytest.mark.parametrize("compression", list(Compression))
def test_stored_telemetry_push_contains_the_client_id_and_the_decompressed_metrics(compression: Compression) -> None:
    virtual = VirtualCluster(1, ENABLED)
    virtual.advance(12_345)
    pushing(virtual, b"metrics", compression)
    [push] = virtual.state.telemetry_history.pushes("pushing")
    assert (push.at_ms, push.broker_id, push.client_id) == (virtual.now_ms, 0, "pushing")
    assert (push.terminating, push.compression, push.payload) == (True, compression.name.lower(), b"metrics")
    assert len(push.client_instance_id) == 22
    assert virtual.state.telemetry_history.pushes("other") == []
    virtual.state.reset()
    assert virtual.state.telemetry_history.pushes() == []


@pytest.mark.rule("AD-37")
def test_oldest_stored_telemetry_pushes_are_dropped_if_count_or_size_is_too_large() -> None:
    virtual = VirtualCluster(1, ENABLED)
    for number in range(MOST_PUSHES + 1):
        pushing(virtual, b"%d" % number)
    pushes = virtual.state.telemetry_history.pushes()
    assert (len(pushes), pushes[0].payload) == (MOST_PUSHES, b"1")
    pushing(virtual, bytes(MOST_BYTES - 10), Compression.ZSTD)
    assert sum(len(push.payload) for push in virtual.state.telemetry_history.pushes()) <= MOST_BYTES
    pushing(virtual, bytes(MOST_BYTES + 1), Compression.ZSTD)
    [only] = virtual.state.telemetry_history.pushes()
    assert len(only.payload) == MOST_BYTES + 1


@pytest.mark.rule("AD-17")
def test_method_alter_client_metrics_sets_and_deletes_settings_of_a_subscription() -> None:
    with cluster(config=ENABLED) as kafka:
        kafka.alter_client_metrics("all", metrics="a.", interval_ms=1000, match="client_id=x")
        kafka.alter_client_metrics("all", match=None)
        assert kafka.state.config.client_metrics == {"all": {"metrics": "a.", "interval.ms": "1000"}}
        with pytest.raises(KafkaError, match="interval must be between 100 and 3600000"):
            kafka.alter_client_metrics("all", interval_ms=99)
        assert kafka.telemetry() == kafka.telemetry("x") == []
