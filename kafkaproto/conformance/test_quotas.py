"""Client quotas and throttling from outside: the arithmetic of Q-2 to Q-7, the mute of KIP-219, the levels of KIP-55.

On a clock that stands still every number is exact. On the wall clock the same numbers are judged with the times at which this client sent,
give or take what stands in `Subject.clock_slack_ms`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from kafkaproto.conformance.scene import UNTIL_KNOWN_MS, Entity, Topic, alter_quotas, limited, new_topic
from kafkaproto.conformance.slow_rate import SlowRate
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, batch_of_bytes, fetch, produce, produce_of_bytes, sizes
from kafkaproto.error_codes import ErrorCode
from kafkaproto.frame import LENGTH_BYTES
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.records.batch import NewRecord
from kafkaproto.records.message_set import build_message_set

PRODUCE, FETCH, PERCENT = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
USER, CLIENT = "user", "client-id"
ANONYMOUS = "ANONYMOUS"
"""Who everybody is on a listener without authentication."""


class Payer:
    """A client-id of its own with a quota of its own, its connection, and what the arithmetic says of what it has paid."""

    def __init__(self, subject: Subject, topic: Topic, bound: float, client_id: str | None = None) -> None:
        self.subject, self.topic, self.bound = subject, topic, bound
        self.client_id = subject.new_name("payer") if client_id is None else client_id
        self.connection = subject.connect(0, self.client_id)
        self.rate = SlowRate()

    @property
    def entity(self) -> Entity:
        return {CLIENT: self.client_id}

    def again(self) -> None:
        """A new connection of the same client-id: the old one is muted."""
        self.connection = self.subject.connect(0, self.client_id)

    def produce(self, request_bytes: int, acks: int = 1) -> int:
        """Send a request of so many bytes, which it pays for; the throttle time of the answer, checked against the arithmetic."""
        now_ms = round(self.subject.now_ms())
        request = produce_of_bytes(self.connection, self.topic.name, request_bytes, acks=acks)
        self.rate.record(request_bytes, now_ms)
        wanted = self.rate.throttle_ms(now_ms, self.bound)
        answer = self.subject.ask(self.connection, request, VERSION)
        assert answer.responses[0].partition_responses[0].error_code == 0
        told = int(answer.throttle_time_ms)
        assert abs(told - wanted) <= self.subject.clock_slack_ms, (told, wanted)
        return told


VERSION = 9


# ---- the arithmetic ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("Q-6", "Q-7", "T-1")
@pytest.mark.parametrize(
    ("bound", "request_bytes", "throttle_ms"),
    [(10_000, 105_000, 500), (10_000, 100_000, 0), (10_000, 100_010, 1), (1024, 20_480, 10_000), (1000, 15_000, 5000)],
)
def test_the_first_request_of_a_client_is_throttled_for_what_is_above_ten_seconds(
    subject: Subject, bound: int, request_bytes: int, throttle_ms: int
) -> None:
    """Scenario 13: whatever the clock, as nothing was recorded before."""
    payer = Payer(subject, new_topic(subject), bound)
    with limited(subject, (payer.entity, {PRODUCE: float(bound)})):
        request = produce_of_bytes(payer.connection, payer.topic.name, request_bytes)
        told = subject.ask(payer.connection, request, VERSION).throttle_time_ms
        assert abs(told - throttle_ms) <= subject.jitter_ms


class Step(NamedTuple):
    """At `at_ms` after the begin, client `who` sends `request_bytes`; on a clock that stands still it is told `exact_ms`."""

    at_ms: int
    who: str
    request_bytes: int
    exact_ms: int


BOUNDS = {"burst": 1000.0, "rested": 1000.0, "steady": 500.0, "quiet": 1000.0}
"""burst, rested: 15 KB are 5 s above; quiet: the saw-tooth of Q-7 by requests of next to nothing."""
TIMELINE = sorted(
    [
        Step(0, "burst", 15_000, 5000),
        Step(5000, "burst", 1000, 6000),  # waiting earns nothing: this is no token bucket
        Step(0, "rested", 15_000, 5000),
        Step(11_000, "rested", 1000, 0),
        *(Step(1000 * second, "steady", 400, 0) for second in range(10)),
        Step(9500, "steady", 2300, 2100),  # ClientQuotaManagerTest.testQuotaViolation
    ]
)


@pytest.mark.rule("Q-2", "Q-3", "Q-4", "Q-7")
def test_windows_and_what_follows_from_them(subject: Subject) -> None:
    """Scenarios 14 and 15, side by side as they take eleven seconds."""
    topic = new_topic(subject)
    payers = {who: Payer(subject, topic, bound) for who, bound in BOUNDS.items()}
    with limited(subject, *((p.entity, {PRODUCE: p.bound}) for p in payers.values())):
        begun = subject.now_ms()
        for step in TIMELINE:
            # On the wall clock a window's end cannot be met to the millisecond: a little behind it, and the numbers of that instant.
            due = begun + step.at_ms + (subject.clock_slack_ms * 2 if step.at_ms else 0)
            subject.pass_ms(max(0, due - subject.now_ms()))
            payer = payers[step.who]
            payer.again()
            told = payer.produce(step.request_bytes)
            if not subject.clock_slack_ms:
                assert told == step.exact_ms, step


@pytest.mark.rule("Q-10")
def test_a_changed_bound_holds_at_once_for_what_was_recorded_before(subject: Subject) -> None:
    """ClientQuotaManagerTest.testQuotaParsing, over a socket."""
    payer = Payer(subject, new_topic(subject), 2000.0)
    with limited(subject, (payer.entity, {PRODUCE: 2000.0})):
        assert payer.produce(27_500) > 0
        for bound, is_throttled in ((30_000.0, False), (500.0, True)):
            assert alter_quotas(subject, (payer.entity, {PRODUCE: bound}))[0].error_code == 0
            subject.pass_ms(UNTIL_KNOWN_MS)
            payer.bound = bound
            payer.again()
            assert bool(payer.produce(200)) == is_throttled
    subject.pass_ms(UNTIL_KNOWN_MS)
    payer.bound = float("inf")
    payer.again()
    assert payer.produce(200) == 0  # removed


@pytest.mark.rule("Q-11", "T-12", "T-3")
def test_every_request_pays_whatever_becomes_of_it(subject: Subject) -> None:
    """A produce to a partition that does not exist, and one that asks for no answer."""
    payer = Payer(subject, new_topic(subject), 1000.0)
    with limited(subject, (payer.entity, {PRODUCE: 1000.0})):
        wrong = produce(payer.topic.name, batch_of_bytes(11_000), partition=77)
        size = len(payer.connection.frame(wrong, VERSION)) - LENGTH_BYTES
        payer.connection.sent.clear()
        answer = subject.ask(payer.connection, wrong, VERSION)
        assert answer.responses[0].partition_responses[0].error_code == 3
        assert abs(answer.throttle_time_ms - (size - 10_000)) <= subject.jitter_ms
        payer.again()
        begun = subject.now_ms()
        subject.send(payer.connection, produce(payer.topic.name, batch(b"x"), acks=0), VERSION)
        del payer.connection.sent[max(payer.connection.sent)]
        subject.send(payer.connection, MetadataRequest([]), 9)
        subject.answer(payer.connection)
        waited = subject.now_ms() - begun
        assert size - 10_000 - subject.jitter_ms - subject.clock_slack_ms <= waited <= size + 1000 + subject.slack_ms


@pytest.mark.rule("T-12", "Q-11")
def test_a_produce_that_is_refused_whole_does_not_come_to_where_bytes_are_charged(subject: Subject) -> None:
    """Bytes in which no batch can begin, of one partition: the answer is made before the quota of bytes is asked (`KafkaApis.handleError`)."""
    payer = Payer(subject, new_topic(subject), 1000.0)
    with limited(subject, (payer.entity, {PRODUCE: 1000.0})):
        answer = subject.ask(payer.connection, produce(payer.topic.name, bytes(104_000)), VERSION)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.CORRUPT_MESSAGE
        assert answer.throttle_time_ms == 0
        payer.produce(200)


# ---- the mute ----------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("T-1", "T-6", "T-7", "T-8")
@pytest.mark.parametrize("version", [0, 1, 5, 6, 9, 11])
def test_the_answer_comes_at_once_and_the_next_one_when_the_time_is_over(subject: Subject, version: int) -> None:
    """Scenario 16. Versions that cannot tell are muted as well."""
    payer = Payer(subject, new_topic(subject), 10_000.0)
    with limited(subject, (payer.entity, {PRODUCE: 10_000.0})):
        records = batch(b"x" * 104_000)
        if version < 3:
            records = build_message_set([NewRecord(b"x" * 104_000)], magic=0)
        data = produce(payer.topic.name, records)
        size = len(payer.connection.frame(data, version)) - LENGTH_BYTES
        payer.connection.sent.clear()
        payer.rate.record(size, 0)
        throttle_ms = payer.rate.throttle_ms(0, payer.bound)
        subject.send(payer.connection, data, version)
        subject.send(payer.connection, MetadataRequest([]), 4)
        first = subject.answer(payer.connection)
        assert first.elapsed_ms <= 50 + subject.slack_ms
        if version >= 1:
            assert abs(first.message.throttle_time_ms - throttle_ms) <= subject.jitter_ms
        other = subject.connect(0, payer.client_id)
        subject.send(other, produce_of_bytes(other, payer.topic.name, 1000), VERSION)
        second = subject.answer(other)
        assert second.elapsed_ms <= 50 + subject.slack_ms
        assert second.message.throttle_time_ms > throttle_ms - subject.jitter_ms - subject.clock_slack_ms
        pipelined = subject.answer(payer.connection)
        assert (
            throttle_ms - subject.early_ms - subject.jitter_ms
            <= pipelined.elapsed_ms
            <= throttle_ms + 100 + subject.slack_ms
        )


@pytest.mark.rule("T-9", "X-5")
def test_a_client_that_reconnects_is_served_at_once_and_pays_more(subject: Subject) -> None:
    payer = Payer(subject, new_topic(subject), 1000.0)
    with limited(subject, (payer.entity, {PRODUCE: 1000.0})):
        first = payer.produce(12_000)
        payer.connection.close()
        payer.again()
        assert payer.produce(3000) > first > 0


# ---- fetch -------------------------------------------------------------------------------------------------------------------


def fetched(subject: Subject, payer: Payer, version: int = 11) -> tuple[Any, int]:
    """(answer of a fetch of all there is, what the arithmetic says that it is throttled for)"""
    now_ms = round(subject.now_ms())
    answer = subject.ask(payer.connection, fetch((payer.topic.name, 0, 0), version=version), version)
    return answer, now_ms


@pytest.mark.rule("T-4", "Q-12", "Q-13", "Q-14")
def test_a_fetch_above_the_quota_is_empty_and_comes_when_it_has_waited(subject: Subject) -> None:
    """Scenario 17: ten seconds' worth of records, and 50 ms of overhead and batch above them."""
    topic = new_topic(subject)
    payer = Payer(subject, topic, 1000.0)
    overhead = len(sized(subject, topic))
    topic.fill(batch_of_bytes(10_050 - overhead - LENGTH_BYTES))
    with limited(subject, (payer.entity, {FETCH: 1000.0})):
        subject.send(payer.connection, fetch((topic.name, 0, 0)), 11)
        subject.send(payer.connection, fetch((topic.name, 0, 0)), 11)
        throttled, delivered = subject.answer(payer.connection), subject.answer(payer.connection)
    assert abs(throttled.message.throttle_time_ms - 50) <= subject.jitter_ms
    assert (throttled.message.error_code, throttled.message.responses) == (0, [])
    assert delivered.elapsed_ms >= 50 - max(subject.jitter_ms, subject.early_ms)
    assert (delivered.message.throttle_time_ms, sizes(delivered.message)) == (0, [10_050 - overhead - LENGTH_BYTES])


def sized(subject: Subject, topic: Topic) -> bytes:
    """The body of the answer to a fetch of this topic that brings nothing."""
    connection = subject.connect(0, "free")
    subject.send(connection, fetch((topic.name, 0, 0), min_bytes=0), 11)
    return subject.answer(connection).data[4:]


@pytest.mark.rule("Q-14")
def test_a_batch_of_more_than_twelve_seconds_never_comes(subject: Subject) -> None:
    """Scenario 17: 250 B/s and an answer of 4096 bytes."""
    topic = new_topic(subject)
    payer = Payer(subject, topic, 250.0)
    overhead = len(sized(subject, topic))
    topic.fill(batch_of_bytes(4096 - overhead - LENGTH_BYTES))
    with limited(subject, (payer.entity, {FETCH: 250.0})):
        for number in range(2 if subject.clock_slack_ms else 6):
            now_ms = round(subject.now_ms())
            payer.rate.record(4096, now_ms)
            wanted = payer.rate.throttle_ms(now_ms, 250.0)
            payer.rate.record(-4096, now_ms)
            answer = subject.ask(payer.connection, fetch((topic.name, 0, 0)), 11)
            assert answer.responses == []
            assert abs(answer.throttle_time_ms - wanted) <= max(subject.clock_slack_ms, subject.jitter_ms)
            if number == 0:
                assert abs(answer.throttle_time_ms - 6384) <= subject.jitter_ms
            if not subject.clock_slack_ms:
                subject.pass_ms(answer.throttle_time_ms)
            else:
                payer.again()


# ---- request time ------------------------------------------------------------------------------------------------------------


def throttled_for_time(subject: Subject, client_id: str) -> int:
    """Ask until it is throttled; the throttle time."""
    for _ in range(500):
        connection = subject.connect(0, client_id)
        for _ in range(5):
            if told := subject.ask(connection, ApiVersionsRequest(), 2).throttle_time_ms:
                return int(told)
        connection.close()
    raise AssertionError("it was never throttled")


@pytest.mark.rule("T-2", "Q-6", "Q-15")
def test_request_time_is_throttled_for_one_window_at_most(subject: Subject) -> None:
    """Scenario 20: a ten-thousandth of a thread."""
    payer = Payer(subject, new_topic(subject), 0.0)
    with limited(subject, (payer.entity, {PERCENT: 0.01})), subject.request_cost("ApiVersions", 1.5):
        told = [throttled_for_time(subject, payer.client_id) for _ in range(3)]
    assert min(told) > 0 and max(told) <= 1000


@pytest.mark.rule("T-3")
def test_the_larger_of_bytes_and_request_time_counts(subject: Subject) -> None:
    """Scenario 20."""
    payer = Payer(subject, new_topic(subject), 1.0)
    with limited(subject, (payer.entity, {PRODUCE: 1.0, PERCENT: 0.01})), subject.request_cost("Produce", 100.0):
        assert payer.produce(500) > 400_000
