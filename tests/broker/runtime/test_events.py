"""Broker events: subscribers, their order, and the events that an observer receives during a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.broker.group.causes import Cause, CauseKind, GroupChange
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.runtime.events import EVENTS, Events, Observer
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.push_telemetry import PushTelemetryRequest
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.wire import batch, fetch, limit, metadata, produce


def noting(name: str, calls: list[tuple[str, tuple[Any, ...]]]) -> Callable[..., None]:
    def note(_: Observer, *arguments: Any) -> None:
        calls.append((name, arguments))

    return note


def observer_of(calls: list[tuple[str, tuple[Any, ...]]], *names: str) -> Observer:
    """Return an observer that overrides these methods and adds each call to `calls`."""
    return type("Noting", (Observer,), {name: noting(name, calls) for name in names})()


def test_event_attribute_is_none_unless_an_observer_of_the_event_is_attached() -> None:
    events, calls = Events(), []  # type: ignore[var-annotated]
    assert [getattr(events, name) for name in EVENTS] == [None] * len(EVENTS)
    observer = observer_of(calls, "cleared")
    events.attach(observer)
    assert events.cleared is not None
    events.cleared(7)
    assert calls == [("cleared", (7,))]
    assert [name for name in EVENTS if getattr(events, name) is not None] == ["cleared"]
    events.detach(observer)
    assert events.cleared is None


def test_observers_are_called_in_the_order_they_were_attached() -> None:
    events, calls = Events(), []  # type: ignore[var-annotated]
    first, second = observer_of(calls, "cleared", "throttle_ended"), observer_of(calls, "cleared")
    events.attach(second)
    events.attach(first)
    assert events.cleared is not None and events.throttle_ended is not None
    order: list[Observer] = []
    for observer in (first, second):
        type(observer).cleared = lambda self, now_ms: order.append(self)  # type: ignore[method-assign]
    events.detach(first)
    events.attach(first)
    assert events.cleared is not None
    events.cleared(5)
    assert order == [second, first]
    with pytest.raises(ValueError, match="already attached to this cluster"):
        events.attach(first)


def test_attaching_and_detaching_an_observer_sets_and_clears_wants_records_apart() -> None:
    events = Events()
    wanting = type("Wanting", (Observer,), {"wants_records_apart": True})()
    events.attach(wanting)
    assert events.wants_records_apart
    events.detach(wanting)
    assert not events.wants_records_apart


def play_a_run(cluster: VirtualCluster) -> list[tuple[int, int, int]]:
    """Produce, fetch, join a group, push metrics, stop a broker, delete a topic. Returns (time, correlation id, size in bytes) of each response."""
    cluster.topic("t", 1, 2)
    limit(cluster, consumer_byte_rate=100.0)
    client = cluster.connect()
    cluster.state.forced_throttles.add(ForcedThrottle(50, api="Produce", times=1))
    client.ask(produce("t", batch(b"x" * 5000)), 9)
    cluster.advance(100)
    client.send(produce("t", batch(b"y"), acks=0), 9)
    cluster.advance(1000)
    client.ask(fetch(("t", 0, 0)), 12)
    cluster.advance(60_000)
    client.send(fetch(("t", 0, 2), max_wait_ms=500, min_bytes=1), 12)
    cluster.advance(500)
    client.ask(FindCoordinatorRequest("g"), 0)
    client.ask(JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")]), 5)
    member = cluster.connect(cluster.state.coordinator_of("g"))
    member.ask(JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")]), 3)
    cluster.connect(cluster.state.nodes[0].transactions.coordinator_id("x")).ask(InitProducerIdRequest("x", 1000), 4)
    subscribed = client.ask(GetTelemetrySubscriptionsRequest(bytes(16)), 0)
    push = PushTelemetryRequest(subscribed.client_instance_id, subscribed.subscription_id, True, 0, b"metrics")
    client.ask(push, 0)
    client.ask(metadata(), 9)
    client.send_bytes(b"\0\0\0\1\0")
    cluster.state.stop_broker(1)
    cluster.advance(1)
    cluster.state.controller.delete_topic("t")
    cluster.run()
    cluster.state.reset()
    return [(a.at_ms, a.correlation_id, a.size_bytes) for a in [*client.answers, *member.answers]]


def test_attached_observer_receives_all_events_of_a_cluster() -> None:
    cluster = VirtualCluster(2, {"kafkaproto.client.telemetry.enable": "true"}, release_name="3.9")
    calls: list[tuple[str, tuple[Any, ...]]] = []
    cluster.state.events.attach(observer_of(calls, *EVENTS))
    play_a_run(cluster)
    counts = Counter(name for name, _ in calls)
    rare = {"log_truncated", "response_lost"}
    assert {name for name in EVENTS if not counts[name]} <= rare
    assert counts["request_begun"] == counts["response_sent"] + counts["response_lost"]
    assert counts["response_sent"] == counts["response_ready"] + counts["request_unanswered"]
    assert next(arguments[1] for name, arguments in calls if name == "throttled") == 50
    appended = [arguments[1:] for name, arguments in calls if name == "records_appended"]
    assert appended == [("t", 0, 1), ("t", 0, 2)]
    assert {arguments[2] for name, arguments in calls if name == "noted"} >= {"parked", "broker", "leader"}


def test_docstring_of_observer_lists_every_event() -> None:
    assert Observer.__doc__ is not None
    assert [name for name in EVENTS if f"`{name}`" not in Observer.__doc__] == []


def test_observer_gets_broker_and_partition_if_watermark_moves_or_log_is_truncated() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t", 1, 2)
    calls: list[tuple[str, tuple[Any, ...]]] = []
    moves: list[tuple[int, int, int]] = []
    places: list[tuple[str, int, int]] = []

    class Moves(Observer):
        def offsets_moved(self, broker_id: int, topic: str, index: int, log: ReplicaLog, now_ms: int) -> None:
            places.append((topic, index, now_ms - cluster.now_ms))
            moves.append((broker_id, log.log_start_offset, log.high_watermark))

    cluster.state.events.attach(observer_of(calls, "log_truncated"))
    cluster.state.events.attach(Moves())
    leader = cluster.state.controller.image.topics["t"].partitions[0].leader
    client = cluster.connect(leader)
    client.ask(produce("t", batch(b"x", b"y"), acks=-1), 9)
    cluster.advance(1000)
    partition = cluster.state.nodes[leader].replicas.find("t", 0)
    assert partition is not None
    begun_ms = cluster.now_ms
    partition.delete_records_before(1)
    client.ask(produce("t", batch(b"z"), acks=-1), 9)
    cluster.advance(1000)
    assert moves[:3] == [(leader, 0, 2), (1 - leader, 0, 2), (leader, 1, 2)]
    assert moves[3:] == [(1 - leader, 1, 2), (leader, 1, 3), (1 - leader, 1, 3)]
    assert set(places) == {("t", 0, 0)}
    truncations = [arguments for _, arguments in calls]
    assert [truncation[:-1] for truncation in truncations] == [(i, "t", 0, "start", 0, 1) for i in (leader, 1 - leader)]
    assert begun_ms == truncations[0][-1] <= truncations[1][-1] < cluster.now_ms


def test_observer_is_called_once_for_a_broker_stop_and_once_for_the_broker_start() -> None:
    cluster = VirtualCluster(2)
    calls: list[tuple[str, tuple[Any, ...]]] = []
    cluster.state.events.attach(observer_of(calls, "broker_changed"))
    for change in (cluster.state.stop_broker, cluster.state.stop_broker, cluster.state.start_broker):
        change(1)
        cluster.advance(5)
    now_ms = cluster.now_ms
    assert [arguments for _, arguments in calls] == [(1, False, now_ms - 15), (1, True, now_ms - 5)]


def test_each_group_event_contains_the_old_and_the_new_state_of_the_group() -> None:
    cluster = VirtualCluster()
    calls: list[tuple[str, tuple[Any, ...]]] = []
    cluster.state.events.attach(observer_of(calls, "group_changed"))
    client = cluster.connect()
    protocols = [JoinGroupRequestProtocol("range", b"")]
    member = client.ask(JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", protocols), 3).member_id
    client.ask(SyncGroupRequest("g", 1, member, assignments=[SyncGroupRequestAssignment(member, b"a")]), 2)
    cluster.advance(10_000)
    cluster.state.reset()
    joined, timed_out = (Cause(CauseKind.JOINED, member),), (Cause(CauseKind.SESSION_TIMED_OUT, member),)
    unloaded = (Cause(CauseKind.UNLOADED),)
    assert [arguments[:-1] for _, arguments in calls] == [
        (0, GroupChange("g", "classic", None, "PreparingRebalance", 0, 0, 0, (member,), joined)),
        (0, GroupChange("g", "classic", "PreparingRebalance", "CompletingRebalance", 0, 1, 1, (member,), ())),
        (0, GroupChange("g", "classic", "CompletingRebalance", "Stable", 1, 1, 1, (member,), ())),
        (0, GroupChange("g", "classic", "Stable", "PreparingRebalance", 1, 1, 1, (), timed_out)),
        (0, GroupChange("g", "classic", "PreparingRebalance", "Empty", 1, 2, 2, (), ())),
        (0, GroupChange("g", "classic", "Empty", "Dead", 2, 2, 2, (), unloaded)),
    ]
    start_ms = cluster.now_ms - 10_000
    assert [arguments[-1] - start_ms for _, arguments in calls] == [0, 0, 0, 10_000, 10_000, 10_000]


def raising(name: str, calls: Counter[str]) -> Callable[..., None]:
    def method(_: Observer, *__: Any) -> None:
        calls[name] += 1
        raise ArithmeticError(f"of {name}")

    return method


def test_exception_in_an_observer_is_logged_and_changes_no_response(caplog: pytest.LogCaptureFixture) -> None:
    undisturbed, disturbed = VirtualCluster(2, release_name="3.9"), VirtualCluster(2, release_name="3.9")
    raised: Counter[str] = Counter()
    calls: list[tuple[str, tuple[Any, ...]]] = []
    disturbed.state.events.attach(type("Broken", (Observer,), {name: raising(name, raised) for name in EVENTS})())
    disturbed.state.events.attach(observer_of(calls, *EVENTS))
    assert play_a_run(disturbed) == play_a_run(undisturbed)
    assert raised == Counter(name for name, _ in calls)
    failed = {str(record.exc_info[1]) for record in caplog.records if record.exc_info}
    assert failed == {f"of {name}" for name in raised}


def test_observer_method_request_parked_is_called_only_for_a_join_group_that_waits() -> None:
    """The join of the only member completes inside its handler; that of a second member waits for the first one."""
    cluster = VirtualCluster(config={"group.initial.rebalance.delay.ms": "0"})
    calls: list[tuple[str, tuple[Any, ...]]] = []
    cluster.state.events.attach(observer_of(calls, "request_parked", "request_completed"))
    protocols = [JoinGroupRequestProtocol("range", b"")]
    first, second = cluster.connect(), cluster.connect()
    member = first.ask(JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", protocols), 3).member_id
    cluster.advance(0)
    assert calls == []
    second.send(JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", protocols), 3)
    assert [name for name, _ in calls] == ["request_parked"]
    first.send(JoinGroupRequest("g", 10_000, 10_000, member, None, "consumer", protocols), 3)
    assert [name for name, _ in calls] == ["request_parked", "request_completed"]
