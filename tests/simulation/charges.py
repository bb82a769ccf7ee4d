"""An interceptor of every request and response that compares each throttle with what the quotas require (X-5, X-6, T-7).

It replaces `pipeline.begin` and `pipeline.settle`, so that it sees a response before it is charged, and a throttled fetch before its data
are removed. Independent of the broker's way to charge.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from kafkaproto.broker.requests import pipeline
from kafkaproto.broker.requests.outcomes import NoReply
from kafkaproto.frame import LENGTH_BYTES, finish_frame, start_frame
from tests.simulation.quotas import FETCH, SentRequest

if TYPE_CHECKING:
    from tests.simulation.line import Line
    from tests.simulation.world import World


MUTATIONS = ("CreatePartitions", "CreateTopics", "DeleteTopics")
FIRST_WITH_THROTTLE_TIME = {
    "AddOffsetsToTxn": 0,
    "AddPartitionsToTxn": 0,
    "AlterClientQuotas": 0,
    "ApiVersions": 1,
    "ConsumerGroupHeartbeat": 0,
    "CreatePartitions": 0,
    "CreateTopics": 2,
    "DeleteRecords": 0,
    "DeleteTopics": 1,
    "DescribeTransactions": 0,
    "EndTxn": 0,
    "Fetch": 1,
    "Heartbeat": 1,
    "InitProducerId": 0,
    "JoinGroup": 2,
    "LeaveGroup": 1,
    "ListOffsets": 2,
    "ListTransactions": 0,
    "Metadata": 3,
    "OffsetCommit": 3,
    "OffsetFetch": 3,
    "Produce": 1,
    "SyncGroup": 1,
    "TxnOffsetCommit": 0,
}


class Charges:
    """The expected throttles of all connections. lines: all connections of this process, by connection id."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.lines: dict[int, Line] = {}
        self._stack = ExitStack()
        self._begin, self._settle = pipeline.begin, pipeline.settle
        self._stack.enter_context(patch.object(pipeline, "begin", self._begins))
        self._stack.enter_context(patch.object(pipeline, "settle", self._settles))

    def close(self) -> None:
        self._stack.close()

    def check(self) -> None:
        """Compare the throttle metrics of the brokers."""
        world = self._world
        closed_ms = {connection_id: line.closed_ms for connection_id, line in self.lines.items()}
        world.quotas.check_journal(world.cluster.state.journal.throttles(), closed_ms, world.now_ms)
        for broker_id in world.running():
            metrics = world.cluster.state.nodes[broker_id].quotas.metrics(world.now_ms)
            world.quotas.check_metrics(world.quotas.brokers[broker_id], metrics, world.now_ms)

    def check_whole(self) -> None:
        """At the end of a process, also check X-5 for acks=0 and for versions without a throttle time."""
        self.check()
        free_ms: dict[int, int] = {}
        for request in self._world.cluster.state.journal.requests():
            until_ms = free_ms.get(request.connection_id, 0)
            assert request.at_ms >= until_ms, f"X-5: {request} while throttled until {until_ms}"
            free_ms[request.connection_id] = request.at_ms + request.throttle_time_ms

    def _begins(self, node: Any, peer: Any, frame: memoryview, now_ms: int) -> None:
        self._safely(lambda: self._begun(self.lines[peer.connection_id], frame))
        self._begin(node, peer, frame, now_ms)

    def _begun(self, line: Line, frame: memoryview) -> None:
        world = self._world
        correlation_id = int.from_bytes(frame[4:8], "big")
        request, version, size_bytes = line.sent.pop(correlation_id)
        name = type(request).__name__.removesuffix("Request")
        assert line.request_in_flight is None, f"{line.name}: two requests at once"
        assert world.now_ms >= line.muted_until_ms, f"T-7: {line.name}: handled while muted until {line.muted_until_ms}"
        partitions = {}
        if name in MUTATIONS:
            partitions = {topic.name: len(topic.partitions) for topic in world.image.topics.values()}
        cost_ms = world.quotas.cost_ms(line.broker_id, name)
        line.request_in_flight = SentRequest(request, version, size_bytes, cost_ms, partitions)

    def _settles(self, exchange: Any, outcome: Any) -> None:
        line = self.lines[exchange.peer.connection_id]
        self._safely(lambda: self._settled(line, exchange.correlation_id, exchange.codec, outcome))
        self._settle(exchange, outcome)

    def _settled(self, line: Line, correlation_id: int, api: Any, outcome: Any) -> None:
        world = self._world
        requested, line.request_in_flight = line.request_in_flight, None
        assert requested is not None, f"{line.name}: answered twice"
        message = None if isinstance(outcome, NoReply) else outcome.message
        request_id = line.broker_id, line.connection.connection_id, correlation_id
        counts = api.name == "Fetch" and world.quotas.brokers[line.broker_id].ever[FETCH]
        fetch_bytes = _body_bytes(api, message) + LENGTH_BYTES if counts else 0
        throttle_ms = world.quotas.charge_response(
            request_id, line.client_id or "", requested, message, fetch_bytes, world.now_ms
        )
        line.throttled(throttle_ms, is_reported=api.version >= FIRST_WITH_THROTTLE_TIME[api.name])

    def _safely(self, check: Callable[[], None]) -> None:
        """Turn an exception into a failure of the simulation; otherwise it would only close one connection."""
        try:
            check()
        except (AssertionError, KeyError) as error:
            self._world.cluster.fail(error)


def _body_bytes(api: Any, message: Any) -> int:
    out = start_frame()
    splices: list[tuple[int, Any]] = []
    api.encode_response(message, out, splices)
    return finish_frame(out, splices)
