"""Invariants of random work on random clusters, checked after every step (X-1 to X-6)."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass
from math import floor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.broker.quota.windows import SampledRate
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.offset_fetch import OffsetFetchRequestGroup
from kafkaproto.records.batch import batches, complete_bytes
from tests.support.acls import with_known_codes
from tests.support.offered import OFFERED
from tests.support.scene import hold, release, replica
from tests.support.wire import batch_of_bytes, fetch, flat, limit, metadata, produce, produced

SIZES = (80, 120, 200, 700, 2000)


def _fill(value: Any, absent: tuple[str, ...] = ()) -> None:
    """Set the topic name `t` in all name fields, and the other fields that a default request needs to be valid."""
    for field in fields(value):
        field_value = getattr(value, field.name)
        if field.name in absent:
            continue
        if field.name in ("name", "topic") and isinstance(field_value, str):
            setattr(value, field.name, "t")
        elif field.name in ("group_id", "key") and isinstance(field_value, str):
            setattr(value, field.name, "a-group")
        elif field.name == "client_software_name":
            value.client_software_name = "test"
        elif field.name == "client_software_version":
            value.client_software_version = "1.0"
        elif is_dataclass(field_value):
            _fill(field_value)


VERSIONS = [(key, version) for key, versions in OFFERED.items() for version in versions]


@pytest.mark.rule("X-1")
@pytest.mark.parametrize(("key", "version"), VERSIONS, ids=[f"{APIS[k].name} v{v}" for k, v in VERSIONS])  # type: ignore[index]
def test_request_of_each_api_version_gets_a_response_without_extra_bytes(key: int, version: int) -> None:
    """A default request is answered at once or at its deadline, and no bytes are left after the response."""
    cluster = VirtualCluster(2)
    cluster.topic("t", 2, 2)
    client = cluster.connect()
    module = __import__(f"kafkaproto.messages.{APIS[key].module}", fromlist=["x"])  # type: ignore[index]
    request = getattr(module, f"{APIS[key].name}Request")()  # type: ignore[index]
    _fill(request, codec(key, version).request.absent)
    with_known_codes(request)
    if key == 0:
        request = produce("t", batch_of_bytes(100))
    if key == 1:
        ids = {"t": cluster.state.controller.image.topics["t"].topic_id}
        request = fetch(("t", 0, 0), topic_ids=ids, version=version)
    if key == ApiKey.OFFSET_FETCH and version >= 8:
        request.groups = [OffsetFetchRequestGroup("g")]  # without a group it gets no response before 4.0 (GO-35)
    correlation_id = client.send(request, version)
    cluster.advance(1000)
    assert [a.correlation_id for a in client.answers] == [correlation_id]
    assert client.closed_ms is None
    assert type(client.latest).__name__ == f"{APIS[key].name}Response"  # type: ignore[index]
    assert codec(key, version).name == APIS[key].name  # type: ignore[index]


class Work:
    """Random requests to a cluster, with a simple model of the accepted records."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cluster = VirtualCluster(3, semantics=self.chance.choice(["kip", "kafka"]), seed=seed)
        self.partitions = 3
        self.cluster.topic("t", self.partitions, 3)
        self.accepted: dict[int, list[int]] = {p: [] for p in range(self.partitions)}
        """Partition to the size of each batch of one record, by offset."""
        self.watermarks = dict.fromkeys(range(self.partitions), 0)

    def leader(self, partition: int) -> int:
        return self.cluster.state.controller.image.leader_of("t", partition)[0]

    def client(self, partition: int) -> MemoryClient:
        return self.cluster.connect(self.leader(partition))

    def produce(self) -> None:
        partition = self.chance.randrange(self.partitions)
        size = self.chance.choice(SIZES)
        response = produced(self.client(partition).ask(produce("t", batch_of_bytes(size), partition), 9))
        assert (response.error_code, response.base_offset) == (0, len(self.accepted[partition]))
        self.accepted[partition].append(size)

    def refuse(self) -> None:
        partition = self.chance.randrange(self.partitions)
        data = bytearray(batch_of_bytes(200))
        data[-1] ^= 1
        assert produced(self.client(partition).ask(produce("t", bytes(data), partition), 9)).error_code == 2

    def hold(self) -> None:
        partition = self.chance.randrange(self.partitions)
        followers = [b for b in range(3) if b != self.leader(partition)]
        (hold if self.chance.random() < 0.5 else release)(self.cluster, self.chance.choice(followers), index=partition)

    def fetch(self) -> None:
        partition = self.chance.randrange(self.partitions)
        end = len(self.accepted[partition])
        offset = self.chance.randint(0, end)
        partition_max = self.chance.choice([0, 1, 79, 150, 500, 3000, 100_000])
        max_bytes = self.chance.choice([0, 1, 100, 1000, 100_000])
        request = fetch(("t", partition, offset), partition_max=partition_max, max_bytes=max_bytes)
        [(_, data)] = flat(self.client(partition).ask(request, 11))
        if data.error_code:
            assert (data.error_code, self.cluster.state.semantics) == (78, "kip")
            return
        self.check_fetch(
            partition, offset, min(partition_max, max_bytes), bytes(data.records or b""), data.high_watermark
        )

    def check_fetch(self, partition: int, offset: int, limit_bytes: int, data: bytes, high_watermark: int) -> None:
        visible = self.accepted[partition][offset:high_watermark]
        first = visible[0] if visible else 0
        assert len(data) <= max(limit_bytes, first)
        assert len(data) <= sum(visible)
        whole = list(batches(memoryview(data)[: complete_bytes(data)]))
        assert [b.header.base_offset for b in whole] == list(range(offset, offset + len(whole)))
        assert [b.header.size for b in whole] == visible[: len(whole)]
        assert bool(whole) == bool(visible)  # a fetch always makes progress

    def check(self) -> None:
        for partition in range(self.partitions):
            leader = replica(self.cluster, self.leader(partition), index=partition).log
            assert leader.log_end_offset == len(self.accepted[partition])
            assert leader.log_start_offset <= leader.high_watermark <= leader.log_end_offset
            assert leader.high_watermark >= self.watermarks[partition]
            self.watermarks[partition] = leader.high_watermark
            for broker_id in range(3):
                log = replica(self.cluster, broker_id, index=partition).log
                assert log.log_end_offset <= leader.log_end_offset
                assert log.high_watermark <= leader.high_watermark
                if self.cluster.state.semantics == "kafka":
                    assert log.high_watermark <= log.log_end_offset


@pytest.mark.rule("X-2", "X-3", "X-4")
@pytest.mark.parametrize("seed", range(25))
def test_random_requests_never_lower_a_high_watermark_or_return_records_above_it(seed: int) -> None:
    work = Work(seed)
    steps = [work.produce, work.produce, work.produce, work.fetch, work.fetch, work.hold, work.refuse]
    for _ in range(120):
        work.chance.choice(steps)()
        work.cluster.advance(work.chance.choice([0, 0, 1, 600]))
        work.check()


@pytest.mark.rule("X-2")
def test_simulated_clusters_with_equal_seeds_record_identical_requests() -> None:
    def journal(seed: int) -> list[Any]:
        work = Work(seed)
        for _ in range(60):
            work.chance.choice([work.produce, work.fetch, work.hold])()
            work.cluster.advance(7)
        return [request._replace(connection_id=0) for request in work.cluster.state.journal.requests()]

    assert journal(3) == journal(3)
    assert journal(3) != journal(4)


@pytest.mark.rule("X-5")
@pytest.mark.parametrize("seed", range(5))
def test_responses_arrive_in_request_order_and_not_before_the_previous_throttle_ends(seed: int) -> None:
    chance = random.Random(seed)
    cluster = VirtualCluster()
    cluster.topic("t")
    limit(cluster, producer_byte_rate=2000.0, consumer_byte_rate=3000.0)
    client = cluster.connect()
    sent = []
    for _ in range(60):
        request, version = chance.choice(
            [
                (metadata(), 1),
                (produce("t", batch_of_bytes(chance.choice([100, 3000]))), 9),
                (fetch(("t", 0, 0), max_wait_ms=chance.choice([0, 50])), 11),
            ]
        )
        sent.append(client.send(request, version))
        cluster.advance(chance.choice([0, 10, 400]))
    cluster.advance(10_000_000)
    assert [a.correlation_id for a in client.answers] == sent
    for before, after in zip(client.answers, client.answers[1:], strict=False):
        assert after.at_ms - before.at_ms >= getattr(before.message, "throttle_time_ms", 0)


def slowly(events: list[tuple[int, float]], bound: float) -> list[int]:
    """Return the throttle time in ms after each event, by a literal implementation of Q-2 to Q-6 with eleven windows of a second."""
    windows, window_ms = 11, 1000
    samples: list[dict[str, float]] = []
    throttles = []
    for now, value in events:
        if not samples or now - samples[-1]["start"] >= window_ms:
            samples.append({"start": now, "last": now, "sum": 0.0})
            samples = samples[-(windows + 1) :]
        samples[-1]["sum"] += value
        samples[-1]["last"] = now
        live = [s for s in samples if now - s["last"] < windows * window_ms]
        total = sum(s["sum"] for s in live)
        elapsed = now - min(s["start"] for s in live)
        full = elapsed // window_ms
        if full < windows - 1:
            elapsed += (windows - 1 - full) * window_ms
        rate = total / (max(elapsed, 1) / 1000)
        # round half up, as in Java
        throttles.append(floor((rate - bound) / bound * max(elapsed, 1) + 0.5) if rate > bound else 0)
    return throttles


@pytest.mark.rule("X-6", "Q-2", "Q-5")
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 7, 250, 999, 1000, 1001, 3000, 11_000, 12_500]), st.integers(0, 50_000)),
        max_size=60,
    ),
    st.sampled_from([250.0, 1000.0, 4096.0]),
)
@settings(max_examples=300, deadline=None)
def test_every_throttle_time_equals_that_of_a_simple_reference_implementation(
    steps: list[tuple[int, int]], bound: float
) -> None:
    now, events = 1_700_000_000_000, []
    for gap, value in steps:
        now += gap
        events.append((now, float(value)))
    sampled = SampledRate(11, 1000)
    assert [sampled.record_and_throttle(value, at, bound) for at, value in events] == slowly(events, bound)
