"""Request time (Q-15): measured in real time, scripted in virtual time, and charged once per request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.node import Node
from kafkaproto.broker.quota.client_quotas import ClientQuotas
from kafkaproto.broker.quota.entities import DEFAULT, REQUEST_PERCENTAGE, QuotaEntity
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.runtime.clock import ManualClock
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.metadata import MetadataResponse
from tests.support.wire import batch, fetch, limit, metadata, produce


class WorkingClock(ManualClock):
    """A clock that the broker takes for real time, and that advances where a test simulates work."""

    is_wall = True

    def __init__(self) -> None:
        super().__init__()
        self._worked_ms = 0.0

    def precise_ms(self) -> float:
        return super().precise_ms() + self._worked_ms

    def work(self, delta_ms: float) -> None:
        self._worked_ms += delta_ms


class Bench:
    """A cluster on a working clock, with a request quota of 1 percent for every client."""

    def __init__(self) -> None:
        self.clock = WorkingClock()
        self.cluster = VirtualCluster()
        self.cluster.topic("t")
        self.node: Node = self.cluster.state.nodes[0]
        self.node.clock = self.clock
        self.node.apis = dict(self.node.apis)
        self.limit(DEFAULT, 1.0)

    def limit(self, client_id: str, percentage: float) -> None:
        self.cluster.state.quota_store.set(QuotaEntity(client_id=client_id), REQUEST_PERCENTAGE, percentage)

    def wrap(self, key: int, around: Callable[[Callable[..., Any], Exchange, Any], Any]) -> None:
        """Replace the handler of an API by `around(handler, context, request)`."""
        registration = self.node.apis[key]
        handler = registration.handler
        changed = replace(registration, handler=lambda context, request: around(handler, context, request))
        self.node.apis = {**self.node.apis, key: changed}

    def costs(self, key: int, cost_ms: float) -> None:
        def around(handler: Callable[..., Any], context: Exchange, request: Any) -> Any:
            self.clock.work(cost_ms)
            return handler(context, request)

        self.wrap(key, around)

    def charged_ms(self, client_id: str) -> float:
        """Return the request time charged to a client in ms: its rate is a percentage over ten seconds."""
        (metric,) = [m for m in self.node.quotas.request.metrics(self.cluster.now_ms) if m.client_id == client_id]
        return round(metric.rate * 100, 6)

    def exempt_ms(self) -> float:
        """Return the exempt request time in ms: its rate is a percentage over thirty seconds, one of the two windows of metrics."""
        return round(self.node.quotas.exempt_request_time.peek(self.cluster.now_ms) * 300, 6)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.rule("Q-15")
def test_time_spent_in_a_handler_is_charged_to_the_request_quota(bench: Bench) -> None:
    bench.costs(ApiKey.METADATA, 102)
    client = bench.cluster.connect()
    assert client.ask(metadata(), 3).throttle_time_ms == 200  # 10.2 percent in ten seconds against 1 percent
    assert bench.charged_ms("test") == 102


@pytest.mark.rule("Q-15")
def test_request_time_of_1000_ms_per_second_uses_up_a_request_quota_of_100_percent(bench: Bench) -> None:
    bench.limit("test", 100.0)
    bench.costs(ApiKey.METADATA, 1000)
    client = bench.cluster.connect()
    for _ in range(10):
        assert client.ask(metadata(), 3).throttle_time_ms == 0
        bench.cluster.advance(1000)
    assert client.ask(metadata(), 3).throttle_time_ms == 1000


@pytest.mark.rule("Q-15")
def test_waiting_request_is_charged_all_its_processing_time_only_when_it_completes(bench: Bench) -> None:
    operation = Delayed()

    def park(handler: Callable[..., Any], context: Exchange, request: Any) -> Any:
        bench.clock.work(30)
        return operation

    def build() -> Reply:
        bench.clock.work(50)
        return Reply(MetadataResponse())

    bench.wrap(ApiKey.METADATA, park)
    client = bench.cluster.connect()
    client.send(metadata(), 3)
    bench.cluster.advance(5000)
    assert not list(bench.node.quotas.request.metrics(bench.cluster.now_ms))
    operation.complete(build, bench.cluster.now_ms)
    assert len(client.answers) == 1
    assert bench.charged_ms("test") == 80


@pytest.mark.rule("Q-15")
def test_time_to_build_a_delayed_response_is_charged_to_the_client_that_receives_it(bench: Bench) -> None:
    operation = Delayed()
    bench.wrap(ApiKey.METADATA, lambda handler, context, request: operation)

    def build() -> Reply:
        bench.clock.work(50)
        return Reply(MetadataResponse())

    def wake(handler: Callable[..., Any], context: Exchange, request: Any) -> Any:
        bench.clock.work(3)
        operation.complete(build, context.now_ms)
        bench.clock.work(4)
        return handler(context, request)

    bench.wrap(ApiKey.API_VERSIONS, wake)
    waiting, waking = bench.cluster.connect(client_id="waiting"), bench.cluster.connect(client_id="waking")
    waiting.send(metadata(), 3)
    waking.ask(ApiVersionsRequest(), 2)
    assert (bench.charged_ms("waiting"), bench.charged_ms("waking")) == (50, 7)


@pytest.mark.rule("Q-15")
def test_fetch_that_waits_4_s_is_charged_only_its_60_ms_of_processing_time(bench: Bench) -> None:
    bench.costs(ApiKey.FETCH, 10)
    read_all = bench.node.reader.read_all

    def slow(*arguments: Any) -> Any:
        bench.clock.work(25)
        return read_all(*arguments)

    bench.node.reader.read_all = slow  # type: ignore[method-assign]
    client = bench.cluster.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=4000), 11)
    bench.cluster.advance(4000)
    assert len(client.answers) == 1
    assert bench.charged_ms("test") == 10 + 25 + 25


@pytest.mark.rule("Q-15")
@pytest.mark.parametrize("error", [KafkaError(ErrorCode.INVALID_REQUEST), RuntimeError("a bug")])
def test_failed_requests_are_also_charged_to_the_request_time_quota(bench: Bench, error: Exception) -> None:
    def fail(handler: Callable[..., Any], context: Exchange, request: Any) -> Any:
        bench.clock.work(120)
        raise error

    bench.wrap(ApiKey.METADATA, fail)
    response = bench.cluster.connect().ask(metadata(), 3)
    assert bench.charged_ms("test") == 120
    assert response.throttle_time_ms == 1000


@pytest.mark.rule("Q-15", "T-3")
def test_acks_0_produce_time_is_added_to_exempt_request_time_not_charged_to_client(bench: Bench) -> None:
    bench.costs(ApiKey.PRODUCE, 500)
    client = bench.cluster.connect()
    client.send(produce("t", batch(b"a"), acks=0), 9)
    assert bench.exempt_ms() == 500
    assert client.ask(metadata(), 3).throttle_time_ms == 0
    assert bench.charged_ms("test") == 0


@pytest.mark.rule("Q-15", "T-5")
def test_follower_fetch_time_is_added_to_exempt_request_time_not_charged_to_client(bench: Bench) -> None:
    bench.costs(ApiKey.FETCH, 500)
    follower = bench.cluster.connect(client_id="follower")
    assert follower.ask(fetch(("t", 0, 0), replica_id=0, max_wait_ms=0), 11).throttle_time_ms == 0
    assert bench.exempt_ms() == 500
    assert not list(bench.node.quotas.request.metrics(bench.cluster.now_ms))


@pytest.mark.rule("Q-15")
def test_request_time_is_not_measured_without_a_request_quota() -> None:
    bench = Bench()
    bench.cluster.state.quota_store.clear()
    bench.node.reset_quotas()
    bench.costs(ApiKey.METADATA, 500)
    bench.cluster.connect().ask(metadata(), 3)
    assert bench.node.counted_ms == 0


@pytest.mark.rule("Q-15", "Q-6")
def test_request_quota_throttle_is_at_most_1_s_and_ends_when_the_rate_is_below_quota() -> None:
    cluster = VirtualCluster()
    limit(cluster, request_percentage=1.0)
    costs = cluster.state.request_cost_ms

    def ask(cost_ms: float) -> int:
        """Send a request on a new connection, because the previous connection is muted; return the throttle time in ms."""
        costs["Metadata"] = cost_ms
        throttle_ms: int = cluster.connect().ask(metadata(), 3).throttle_time_ms
        return throttle_ms

    for _ in range(10):
        assert ask(4) == 0
        cluster.advance(1000)
    cluster.advance(500)
    assert ask(67.1) == 210
    cluster.advance(210)
    for _ in range(10):
        ask(4)
        cluster.advance(1000)
    assert ask(500) == 1000
    for _ in range(10):
        cluster.advance(1000)
        assert ask(0) == 1000
    cluster.advance(1000)
    assert ask(0) == 0


@pytest.mark.rule("Q-15")
def test_parked_fetch_with_a_simulated_cost_of_60_ms_is_charged_60_ms_only_once() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    limit(cluster, request_percentage=1.0)
    cluster.state.request_cost_ms["Fetch"] = 60.0
    client = cluster.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=500), 11)
    cluster.advance(500)
    quotas: ClientQuotas = cluster.state.nodes[0].quotas
    assert [round(m.rate, 9) for m in quotas.request.metrics(cluster.now_ms)] == [0.6]
