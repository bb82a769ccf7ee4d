"""Charges, throttles and events of a request whose response cannot be encoded and is replaced by an error response (W-7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import REGISTRY
from kafkaproto.broker.runtime.events import Observer
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from tests.support.wire import limit

ENCODABLE, TOO_LONG = "g", "g" * 40_000
MUTATIONS = 30
"""The tokens of the controller mutation quota that each request takes."""


class Counter(Observer):
    """An observer that collects the names and throttle times of events."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def throttled(self, exchange: Any, throttle_ms: int, reason: Any, held: bool) -> None:
        self.seen.append(("throttled", throttle_ms))

    def response_built(self, exchange: Any, message: Any) -> None:
        self.seen.append(("response_built", message.throttle_time_ms))


def serving(group_id: str, release: str, **quotas: float) -> VirtualCluster:
    """Return a cluster in which the handler of DescribeGroups takes mutation tokens, and responds with this group id. quotas: of all clients."""

    def handle(exchange: Exchange, request: Any) -> Reply:
        if release != "1.1":
            exchange.open_mutations(strict=False).take(MUTATIONS)
        return Reply(DescribeGroupsResponse(groups=[DescribedGroup(group_id=group_id)]))

    cluster = VirtualCluster(config={"controller.quota.window.num": "10"}, release_name=release)
    cluster.state.request_cost_ms["DescribeGroups"] = 20.0
    if quotas:
        limit(cluster, **quotas)
    node = cluster.state.nodes[0]
    node.apis = {**node.apis, ApiKey.DESCRIBE_GROUPS: replace(REGISTRY[ApiKey.DESCRIBE_GROUPS], handler=handle)}
    return cluster


def described(cluster: VirtualCluster) -> tuple[int, int]:
    """Return (error code, throttle time) of a DescribeGroups response."""
    response = cluster.connect().ask(DescribeGroupsRequest(["g"]), 1)
    return response.groups[0].error_code, response.throttle_time_ms


@pytest.mark.rule("W-7", "Q-18")
@pytest.mark.parametrize("quotas", [{"controller_mutation_rate": 2.0}, {"request_percentage": 0.01}])
def test_request_is_throttled_only_once_if_its_response_cannot_be_encoded(quotas: dict[str, float]) -> None:
    working, broken, counter = serving(ENCODABLE, "3.9", **quotas), serving(TOO_LONG, "3.9", **quotas), Counter()
    broken.state.events.attach(counter)
    _, throttle_ms = described(working)
    assert described(broken) == (-1, throttle_ms) and throttle_ms > 0
    assert counter.seen == [("throttled", throttle_ms), ("response_built", throttle_ms)]
    [throttle] = broken.state.journal.throttles()
    assert throttle.throttle_time_ms == throttle_ms
    tokens = [[sensor.tokens for sensor in c.state.mutations.metrics(c.now_ms)] for c in (working, broken)]
    assert tokens[0] == tokens[1]


@pytest.mark.rule("W-7")
def test_unencodable_response_uses_up_only_one_of_two_forced_throttles() -> None:
    cluster, counter = serving(TOO_LONG, "3.9"), Counter()
    cluster.state.events.attach(counter)
    rule = cluster.state.forced_throttles.add(ForcedThrottle(700, times=2))
    assert described(cluster) == (-1, 700)
    assert rule.hits == 1
    assert counter.seen == [("throttled", 700), ("response_built", 700)]


@pytest.mark.rule("W-7")
@pytest.mark.parametrize("release", ["1.1", "3.9"])
def test_handler_time_is_charged_once_if_the_response_cannot_be_encoded(release: str) -> None:
    rates = []
    for group_id, error_code in ((ENCODABLE, 0), (TOO_LONG, -1)):
        cluster = serving(group_id, release, request_percentage=100.0)
        assert described(cluster) == (error_code, 0)
        [sensor] = cluster.state.nodes[0].quotas.request.metrics(cluster.now_ms)
        rates.append(sensor.rate)
    assert rates[0] == rates[1] > 0
