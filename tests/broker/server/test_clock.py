"""Time that a test moves while real clients are connected, `wait_for`, `reset`, and clusters by the hundred (docs/explanation/clocks.md)."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.observe.journal import Journal
from kafkaproto.broker.server.loop import BrokerLoop
from kafkaproto.client import Client as KafkaClient
from kafkaproto.frame import read_frame
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.testing import TestCluster, async_cluster, cluster
from tests.support.raw import client_of, open_sockets, serving
from tests.support.wire import batch, fetch, metadata, produce

OBSERVERS = 10
"""The observers of every test cluster.

The journal; the histories of rebalances, transactions and client telemetry; logs of throttles, undeliverable fetches, requests and
refusals; the queues; the server.
"""


class BlockingClient:
    """A client in the thread of the test, like a library without asyncio."""

    def __init__(self, c: TestCluster, client_id: str = "blocking") -> None:
        host, _, port = c.bootstrap.partition(",")[0].rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.client_id = client_id
        self._client = KafkaClient(client_id)

    def send(self, request: Any, version: int) -> None:
        self.socket.sendall(self._client.send(request, version))

    def answer(self) -> Any:
        return self._client.read(read_frame(self.socket.recv_into)).message

    def ask(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.answer()

    def at_end(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.socket.close()


@contextmanager
def connected(c: TestCluster, client_id: str = "blocking") -> Iterator[BlockingClient]:
    client = BlockingClient(c, client_id)
    try:
        yield client
    finally:
        client.close()


# ---- advance, from the thread of the test ---------------------------------------------------------------------------------------------


@pytest.mark.rule("T-8")
def test_throttle_ends_at_its_exact_millisecond_under_the_manual_clock() -> None:
    with (
        cluster(topics={"t": 1}, clock="manual") as c,
        connected(c, "limited") as client,
        connected(c, "other") as other,
    ):
        c.set_quota(client_id="limited", producer_byte_rate=1000.0)
        throttle_ms = client.ask(produce("t", batch(bytes(15_000))), 9).throttle_time_ms
        assert throttle_ms > 4000
        start_ms = c.clock.now_ms()
        client.send(metadata(), 1)
        c.clock.advance(throttle_ms - 1)
        other.ask(metadata(), 1)
        assert c.journal.requests("Metadata", client_id="limited") == []
        c.clock.advance(1)
        client.answer()
        [metadata_request] = c.journal.requests("Metadata", client_id="limited")
        assert metadata_request.at_ms == start_ms + throttle_ms


@pytest.mark.rule("F-29")
def test_fetches_waiting_100_400_and_700_ms_end_on_time_during_a_5_s_clock_advance() -> None:
    with cluster(topics={"t": 1}, clock="manual") as c:
        clients = [BlockingClient(c, str(wait)) for wait in (700, 100, 400)]
        start_ms = c.clock.now_ms()
        for client in clients:
            client.send(fetch(("t", 0, 0), max_wait_ms=int(client.client_id)), 11)
        c.wait_for(lambda journal: len(journal.events("parked")) == 3)
        c.clock.advance(5000)
        for client in clients:
            client.answer()
            client.close()
        completions = [(s.client_id, s.at_ms - start_ms) for s in c.journal.requests("Fetch")]
        assert completions == [("100", 100), ("400", 400), ("700", 700)]
        assert c.clock.now_ms() == start_ms + 5000


def test_requests_sent_before_a_clock_advance_are_handled_before_the_clock_moves() -> None:
    """Each request is sent on a connection that was just opened and may not be accepted yet."""
    with cluster(clock="manual") as c:
        for _ in range(30):
            start_ms = c.clock.now_ms()
            with connected(c) as client:
                client.send(metadata(), 1)
                c.clock.advance(60_000)
                client.answer()
                assert c.journal.requests()[-1].at_ms == start_ms


def test_clock_advance_of_1500_ms_completes_five_pipelined_300_ms_fetches_in_turn() -> None:
    """On one connection, each long poll of a chain starts when the previous one ends."""
    with cluster(topics={"t": 1}, clock="manual") as c, connected(c) as client:
        start_ms = c.clock.now_ms()
        for _ in range(5):
            client.send(fetch(("t", 0, 0), max_wait_ms=300), 11)
        c.wait_for(lambda journal: journal.events("parked"))
        c.clock.advance(1500)
        for _ in range(5):
            client.answer()
        assert [s.at_ms - start_ms for s in c.journal.requests()] == [300, 600, 900, 1200, 1500]


def test_event_loop_timer_is_rescheduled_only_if_a_new_deadline_is_the_earliest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def delays() -> list[float]:
        state = Cluster()
        loop, delays_seen = BrokerLoop(state), []  # type: ignore[var-annotated]
        call_later = asyncio.get_running_loop().call_later

        def armed(delay_s: float, callback: Any) -> asyncio.TimerHandle:
            delays_seen.append(round(delay_s))
            return call_later(delay_s, callback)

        monkeypatch.setattr(asyncio.get_running_loop(), "call_later", armed)
        start_ms = state.now_ms()
        for after_s in (50, 60, 40, 40, 45, 30):
            loop.call(lambda after_s=after_s: state.timers.at(start_ms + 1000 * after_s, lambda _: None))
        loop.stop()
        return delays_seen

    assert asyncio.run(delays()) == [50, 40, 30]


def test_manual_clock_advanced_by_several_threads_moves_by_the_sum_of_all_advances() -> None:
    with cluster(topics={"t": 1}, clock="manual") as c, connected(c) as client:
        start_ms = c.clock.now_ms()
        client.send(fetch(("t", 0, 0), max_wait_ms=1000), 11)
        c.wait_for(lambda journal: journal.events("parked"))
        fired: list[int] = []
        timers = c.state.timers
        c.run_in_loop(lambda: [timers.at(start_ms + 50 * i, fired.append) for i in range(1, 81)])
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(c.clock.advance, [100] * 40))
        assert c.clock.now_ms() == start_ms + 4000
        assert fired == [start_ms + 50 * i for i in range(1, 81)]
        client.answer()
        assert c.journal.requests("Fetch")[0].at_ms == start_ms + 1000


def test_clock_can_be_advanced_while_clients_send_constantly() -> None:
    with cluster(topics={"t": 1}) as c:
        stop = threading.Event()

        def hammer() -> None:
            with connected(c) as client:
                while not stop.is_set():
                    for _ in range(50):
                        client.send(metadata(), 1)
                    for _ in range(50):
                        client.answer()

        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(hammer) for _ in range(4)]
            try:
                c.wait_for(lambda journal: len(journal.requests()) > 500)
                before = c.clock.now_ms()
                for _ in range(5):
                    c.clock.advance(10_000)
                assert 50_000 <= c.clock.now_ms() - before < 70_000
            finally:
                stop.set()
            for task in work:
                task.result(10)


@pytest.mark.rule("T-11")
def test_idle_connections_time_out_when_a_test_moves_the_clock_forward() -> None:
    with cluster(config={"connections.max.idle.ms": "600000"}) as c, connected(c) as client:
        client.ask(metadata(), 1)
        c.clock.advance(599_000)
        client.ask(metadata(), 1)
        c.clock.advance(599_000)
        client.ask(metadata(), 1)
        c.clock.advance(600_000)
        assert client.at_end()


def test_advancing_the_system_clock_raises_an_error_that_suggests_other_clocks() -> None:
    with cluster(clock="system") as c, pytest.raises(TypeError, match="make it with clock='jump' or clock='manual'"):
        c.clock.advance(1)
    with pytest.raises(
        ValueError, match=r"clock must be 'jump', 'manual' or 'system' .got 'sundial'.; for example clock='jump'"
    ):
        cluster(clock="sundial")


def test_advancing_a_test_clock_by_a_negative_time_is_rejected() -> None:
    for clock in ("jump", "manual"):
        with cluster(clock=clock) as c, pytest.raises(ValueError, match=r"delta_ms must be at least 0 \(got -1\)"):
            c.clock.advance(-1)


@pytest.mark.rule("T-8", "X-5")
@pytest.mark.parametrize("clock", ["system", "jump"])
def test_throttled_connection_is_muted_for_its_throttle_time_in_real_time(clock: str) -> None:
    with cluster(topics={"t": 1}, clock=clock) as c, connected(c) as client:
        c.set_quota(client_id="blocking", producer_byte_rate=10_000.0)
        start_s = time.monotonic()  # the throttle counts from the decision, which comes between this and the response
        throttle_ms = client.ask(produce("t", batch(bytes(101_000))), 9).throttle_time_ms
        assert 80 <= throttle_ms <= 200
        client.ask(metadata(), 1)
        passed_ms = (time.monotonic() - start_s) * 1000
        assert throttle_ms - 1 <= passed_ms < throttle_ms + 1000


async def test_async_cluster_clock_can_be_advanced_in_the_event_loop() -> None:
    async with serving(topics={"t": 1}, clock="manual") as (c, client):
        await client.send(fetch(("t", 0, 0), max_wait_ms=250), 11)
        await c.wait_for(lambda journal: journal.events("parked"))
        start_ms = c.state.clock.now_ms()
        await asyncio.gather(c.clock.advance(200), c.clock.advance(200))
        await client.answer()
        assert c.journal.requests("Fetch")[0].at_ms == start_ms + 250
        assert c.state.clock.now_ms() == start_ms + 400


# ---- wait_for -------------------------------------------------------------------------------------------------------------------------


def test_method_wait_for_returns_the_first_true_result_of_its_condition_function() -> None:
    with cluster() as c, connected(c) as client:
        client.send(metadata(), 1)
        requests = c.wait_for(lambda journal: journal.requests("Metadata"))
        assert isinstance(requests, list) and requests[0].api == "Metadata"
        assert c.wait_for(lambda _: "at once") == "at once"


def test_timeout_error_of_method_wait_for_lists_the_last_requests() -> None:
    with cluster() as c, connected(c, "who-asked") as client:
        client.ask(metadata(), 1)
        with pytest.raises(TimeoutError, match=r"within 0\.01 s; last requests:\n.*who-asked: Metadata v1"):
            c.wait_for(lambda journal: journal.requests("Fetch"), 0.01)
        assert len(c.state.events.observers) == OBSERVERS


def broken(journal: Journal) -> object:
    return bool(journal.requests()) and 1 / 0


@pytest.mark.rule("W-8")
def test_exception_in_condition_of_method_wait_for_is_raised_and_broker_continues() -> None:
    with cluster() as c, connected(c) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(c.wait_for, broken)
        while len(c.state.events.observers) == OBSERVERS:
            time.sleep(0)
        client.ask(metadata(), 1)
        with pytest.raises(ZeroDivisionError):
            waiting.result(5)
        client.ask(metadata(), 1)
        with pytest.raises(ZeroDivisionError):
            c.wait_for(broken)
        assert len(c.state.events.observers) == OBSERVERS


@pytest.mark.rule("W-8")
async def test_exception_in_the_condition_of_the_async_method_wait_for_is_raised() -> None:
    async with serving() as (c, client):
        waiting = asyncio.ensure_future(c.wait_for(broken))
        await asyncio.sleep(0)
        await client.ask(metadata(), 1)
        with pytest.raises(ZeroDivisionError):
            await waiting
        with pytest.raises(ZeroDivisionError):
            await c.wait_for(broken)
        with pytest.raises(TimeoutError, match="raw: Metadata v1"):
            await c.wait_for(lambda journal: journal.requests("Fetch"), 0.01)
        assert len(c.state.events.observers) == OBSERVERS


# ---- reset ----------------------------------------------------------------------------------------------------------------------------


def remains(c: TestCluster) -> dict[str, Any]:
    """Return the sizes of everything that a used cluster could keep."""
    state = c.state
    return c.run_in_loop(
        lambda: {
            "timers": len(state.timers),
            "connections": [len(node.connections) for node in state.nodes],
            "sessions": [len(node.sessions) for node in state.nodes],
            "partitions": [sorted(node.replicas.partitions) for node in state.nodes],
            "watchers": [sum(len(p.watchers) for p in node.replicas.partitions.values()) for node in state.nodes],
            "fetchers": [sorted(node.replicas.fetchers) for node in state.nodes],
            "topics": sorted(state.controller.image.topics),
            "groups": len(state.groups.list_groups()),
            "journal": len(state.journal.requests()) + len(state.journal.throttles()),
            "observers": len(state.events.observers),
            "offset": state.clock.now_ms() - int(time.time() * 1000) > 1000,
            "memory": state.budget.used_bytes,
            "running": [node.running for node in state.nodes],
            "settings": dict(state.config.dynamic_all),
        }
    )


def use(c: TestCluster) -> list[BlockingClient]:
    """Use all features: records, sessions, parked requests, throttles, a rebalancing group and a stopped broker."""
    clients = [BlockingClient(c, str(number)) for number in range(5)]
    c.create_topic("more", 3, 2)
    c.produce("more", [bytes(200_000)] * 5)
    c.set_quota(client_id="0", producer_byte_rate=10.0)
    clients[0].ask(produce("missing", batch(bytes(10_000))), 9)
    clients[1].ask(fetch(("t", 0, 0), session=(0, 0)), 11)
    clients[1].send(fetch(("t", 0, 0), max_wait_ms=600_000), 11)
    protocols = [JoinGroupRequestProtocol("range", b"")]
    group = next(f"group{i}" for i in range(100) if c.run_in_loop(lambda i=i: c.state.coordinator_of(f"group{i}")) == 0)
    join = JoinGroupRequest(group, 30_000, 60_000, "", None, "consumer", protocols)
    assert clients[2].ask(join, 3).error_code == 0
    clients[3].send(join, 3)
    c.wait_for(lambda journal: journal.events("parked") and journal.requests("JoinGroup"))
    c.clock.advance(1500)
    assert len(c.journal.requests("JoinGroup")) == 1
    c.broker(1).stop()
    return clients


def test_cluster_reset_removes_all_state_from_before_the_reset() -> None:
    with cluster(2, {"t": 1}) as c:
        fresh = remains(c)
        for _ in range(3):
            clients = use(c)
            assert remains(c) != fresh
            c.reset()
            assert all(client.at_end() for client in clients)
            for client in clients:
                client.close()
            assert remains(c) == fresh
        with connected(c, "0") as client:
            assert client.ask(produce("t", batch(bytes(10_000))), 9).throttle_time_ms == 0


# ---- many clusters --------------------------------------------------------------------------------------------------------------------


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
def test_starting_200_clusters_leaks_no_file_descriptors_or_threads() -> None:
    def run_cluster() -> None:
        with cluster(3, {"t": 2}) as c, connected(c) as client:
            c.produce("t", [bytes(100_000)])  # a memory file
            client.ask(metadata(), 1)

    run_cluster()
    gc.collect()
    threads, files = threading.active_count(), descriptors()
    most = 0
    for _ in range(200):
        run_cluster()
        most = max(most, descriptors())
    assert threading.active_count() == threads
    assert most <= files + 3  # closed at the end of each cluster, not by the garbage collector
    assert descriptors() <= files


async def test_starting_100_clusters_in_an_event_loop_leaks_no_tasks_or_file_descriptors() -> None:
    async def run_cluster() -> None:
        async with async_cluster(2, {"t": 1}) as c, client_of(c) as client:
            c.produce("t", [bytes(100_000)])
            await client.ask(metadata(), 1)
            await client.send(fetch(("t", 0, 0)), 11)
        assert open_sockets(c) == 0

    await run_cluster()
    gc.collect()
    files, tasks = descriptors(), len(asyncio.all_tasks())
    for _ in range(100):
        await run_cluster()
    assert len(asyncio.all_tasks()) == tasks
    assert descriptors() <= files


def test_two_clusters_running_at_the_same_time_share_neither_topics_nor_a_clock() -> None:
    with (
        cluster(topics={"a": 1}) as cluster_a,
        cluster(topics={"b": 1}) as two,
        connected(cluster_a) as first,
        connected(two) as second,
    ):
        assert [t.name for t in first.ask(metadata(None), 1).topics] == ["a"]
        assert [t.name for t in second.ask(metadata(None), 1).topics] == ["b"]
        cluster_a.clock.advance(100_000)
        assert cluster_a.clock.now_ms() - two.clock.now_ms() >= 99_000
