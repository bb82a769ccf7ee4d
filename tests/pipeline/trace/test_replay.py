"""Quota replay: exact at the quota in force, and like a broker at other quotas."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.pipeline.trace.answers.replay import Replay, Request
from kafkaproto.trace.format import Entry, Event, Exchange
from tests.support.recording import recorder_into
from tests.support.wire import batch, fetch, flat, limit, produce

SAMPLES, WINDOW_MS = 3, 1000
QUOTA_CONFIG = {"quota.window.num": str(SAMPLES)}

Step = tuple[int, int, int]
"""(connection, idle time in ms before the request, bytes)."""
steps = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1500), st.integers(0, 30_000)), min_size=1, max_size=40)


def produced(plan: list[Step], quota: float) -> list[Request]:
    """Return the requests of a producer on three connections that obeys the throttle times of a broker."""
    entries: list[Entry] = []
    cluster = VirtualCluster(config=QUOTA_CONFIG)
    cluster.topic("t")
    cluster.state.record(recorder_into(entries))
    limit(cluster, "p", producer_byte_rate=quota)
    clients = [cluster.connect(client_id="p") for _ in range(3)]
    free_ms = [cluster.now_ms] * 3
    for client_index, later_ms, size in plan:
        at_ms = max(free_ms[client_index] + later_ms, cluster.now_ms)
        cluster.advance(at_ms - cluster.now_ms)
        response = clients[client_index].ask(produce("t", batch(b"x" * size)), 9)
        free_ms[client_index] = cluster.now_ms + response.throttle_time_ms
    return [
        Request(entry.seq, entry.connection, entry.clock_ms, entry.request_bytes, entry.throttle_ms)
        for entry in entries
        if isinstance(entry, Exchange)
    ]


def waits(requests: list[Request], quota: float, fetches: bool = False) -> list[tuple[int, int, int]]:
    replay = Replay(quota, SAMPLES, WINDOW_MS, fetches)
    return [(w.seq, w.at_ms, w.throttle_ms) for w in (*replay.of(requests), *replay.rest())]


@settings(deadline=None)
@given(steps, st.sampled_from([1000.0, 7777.0, 50_000.0]))
def test_replaying_recorded_produces_at_the_same_quota_gives_the_same_throttle_times(
    plan: list[Step], quota: float
) -> None:
    requests = produced(plan, quota)
    assert waits(requests, quota) == [(r.seq, r.at_ms, r.waited_ms) for r in requests]


@settings(deadline=None)
@given(st.lists(st.tuples(st.just(0), st.integers(0, 1500), st.integers(0, 30_000)), min_size=1, max_size=25))
def test_replay_at_a_new_quota_gives_the_throttle_times_of_a_broker_with_that_quota(plan: list[Step]) -> None:
    """The same client runs against a broker with the other quota: equal pauses give equal throttles at equal times."""
    recorded, other = produced(plan, 5000.0), produced(plan, 12_000.0)
    recorded_start_ms, other_start_ms = recorded[0].at_ms, other[0].at_ms
    assert [(at - recorded_start_ms, wait) for _, at, wait in waits(recorded, 12_000.0)] == [
        (r.at_ms - other_start_ms, r.waited_ms) for r in other
    ]


def fetched(quota: float, rounds: int = 12) -> tuple[list[Request], list[int]]:
    """Return the recorded requests of a consumer that fetches 5 KB at a time, and the bytes read from each response."""
    entries: list[Entry] = []
    cluster = VirtualCluster(config=QUOTA_CONFIG)
    cluster.topic("t")
    writer = cluster.connect(client_id="w")
    for _ in range(rounds):
        writer.ask(produce("t", batch(b"x" * 5000)), 9)
    cluster.state.record(recorder_into(entries))
    limit(cluster, "r", consumer_byte_rate=quota)
    reader = cluster.connect(client_id="r")
    offset, read = 0, []
    while offset < rounds:
        cluster.advance(40)
        response = reader.ask(fetch(("t", 0, offset), max_bytes=5000), 11)
        read.append(sum(len(data.records or b"") for _, data in flat(response)))
        offset += read[-1] > 0
        cluster.advance(response.throttle_time_ms)
    throttle_values = {
        e.facts["of"]: e.facts["value"] for e in entries if isinstance(e, Event) and e.kind == "throttle"
    }
    requests = [
        Request(
            entry.seq,
            entry.connection,
            entry.clock_ms,
            throttle_values.get(entry.seq, entry.response_bytes),
            entry.throttle_ms,
            entry.seq in throttle_values,
        )
        for entry in entries
        if isinstance(entry, Exchange)
    ]
    return requests, read


def test_replaying_recorded_fetches_at_the_same_quota_gives_the_same_throttle_times() -> None:
    requests, read = fetched(4000.0)
    assert 0 in read and waits(requests, 4000.0, fetches=True) == [(r.seq, r.at_ms, r.waited_ms) for r in requests]


def test_replay_adds_fetch_retries_at_a_lower_quota_and_omits_them_at_a_higher_quota() -> None:
    """Compared with brokers that have the other quota. A request recorded without a throttle has no pause before a retry."""
    strict, _ = fetched(4000.0)
    free, all_read = fetched(1e9)
    assert len(free) < len(strict) and 0 not in all_read
    relaxed = waits(strict, 1e9, fetches=True)
    assert len(relaxed) == len(free) and not any(wait for _, _, wait in relaxed)
    tightened = waits(free, 4000.0, fetches=True)
    assert sum(wait == 0 for _, _, wait in tightened) == len(free)
    assert len(tightened) > len(free) and len({seq for seq, _, _ in tightened}) == len(free)


def test_quota_replay_ends_even_if_a_fetch_is_too_large_to_ever_meet_the_quota() -> None:
    [_, *again] = waits([Request(1, 1, 0, 1e9, 0), Request(2, 1, 10, 100.0, 0)], 10.0, fetches=True)
    assert again
