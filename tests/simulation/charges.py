"""Stands where every request comes in and every answer goes out, and holds the throttle against what quotas must do (X-5, X-6, T-7).

In place of `pipeline.begin` and `pipeline.settle`: what is about to be answered is seen before anything is charged, a
throttled fetch with the data that it will not have. Must never know how brokers charge.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from kafkaproto.broker.requests import pipeline
from kafkaproto.broker.requests.outcomes import NoReply
from kafkaproto.frame import LENGTH_BYTES, finish_frame, start_frame
from tests.simulation.quotas import FETCH, Asked

if TYPE_CHECKING:
    from tests.simulation.line import Line
    from tests.simulation.world import World


MUTATIONS = ("CreatePartitions", "CreateTopics", "DeleteTopics")
FIRST_WITH_THROTTLE_TIME = {
    "AlterClientQuotas": 0,
    "ApiVersions": 1,
    "CreatePartitions": 0,
    "CreateTopics": 2,
    "DeleteRecords": 0,
    "DeleteTopics": 1,
    "Fetch": 1,
    "ListOffsets": 2,
    "Metadata": 3,
    "OffsetCommit": 3,
    "OffsetFetch": 3,
    "Produce": 1,
}


class Charges:
    """lines: by connection id, those of this process that were ever open."""

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
        """What the brokers show of their throttles."""
        world = self._world
        closed_ms = {connection_id: line.closed_ms for connection_id, line in self.lines.items()}
        world.quotas.check_journal(world.cluster.state.journal.throttles(), closed_ms, world.now_ms)
        for broker_id in world.running():
            shown = world.cluster.state.nodes[broker_id].quotas.metrics(world.now_ms)
            world.quotas.check_metrics(world.quotas.brokers[broker_id], shown, world.now_ms)

    def check_whole(self) -> None:
        """At the end of a process, also X-5 of acks=0 and of versions that are told no throttle."""
        self.check()
        free_ms: dict[int, int] = {}
        for seen in self._world.cluster.state.journal.requests():
            until_ms = free_ms.get(seen.connection_id, 0)
            assert seen.at_ms >= until_ms, f"X-5: {seen} while throttled until {until_ms}"
            free_ms[seen.connection_id] = seen.at_ms + seen.throttle_time_ms

    def _begins(self, node: Any, asker: Any, frame: memoryview, now_ms: int) -> None:
        self._safely(lambda: self._begun(self.lines[asker.connection_id], frame))
        self._begin(node, asker, frame, now_ms)

    def _begun(self, line: Line, frame: memoryview) -> None:
        world = self._world
        correlation_id = int.from_bytes(frame[4:8], "big")
        request, version, size_bytes = line.sent.pop(correlation_id)
        name = type(request).__name__.removesuffix("Request")
        assert line.asked is None, f"{line.name}: two requests at once"
        assert world.now_ms >= line.muted_until_ms, f"T-7: {line.name}: handled while muted until {line.muted_until_ms}"
        partitions = {}
        if name in MUTATIONS:
            partitions = {topic.name: len(topic.partitions) for topic in world.image.topics.values()}
        cost_ms = world.quotas.cost_ms(line.broker_id, name)
        line.asked = Asked(request, version, size_bytes, cost_ms, partitions)

    def _settles(self, exchange: Any, outcome: Any) -> None:
        line = self.lines[exchange.peer.connection_id]
        self._safely(lambda: self._settled(line, exchange.correlation_id, exchange.codec, outcome))
        self._settle(exchange, outcome)

    def _settled(self, line: Line, correlation_id: int, api: Any, outcome: Any) -> None:
        world = self._world
        asked, line.asked = line.asked, None
        assert asked is not None, f"{line.name}: answered twice"
        message = None if isinstance(outcome, NoReply) else outcome.message
        who = line.broker_id, line.connection.connection_id, correlation_id
        counts = api.name == "Fetch" and world.quotas.brokers[line.broker_id].ever[FETCH]
        fetch_bytes = _body_bytes(api, message) + LENGTH_BYTES if counts else 0
        throttle_ms = world.quotas.answers(who, line.client_id or "", asked, message, fetch_bytes, world.now_ms)
        line.throttled(throttle_ms, is_told=api.version >= FIRST_WITH_THROTTLE_TIME[api.name])

    def _safely(self, look: Callable[[], None]) -> None:
        """What is wrong ends the simulation, not one connection."""
        try:
            look()
        except (AssertionError, KeyError) as error:
            self._world.cluster.fail(error)


def _body_bytes(api: Any, message: Any) -> int:
    out = start_frame()
    splices: list[tuple[int, Any]] = []
    api.encode_response(message, out, splices)
    return finish_frame(out, splices)
