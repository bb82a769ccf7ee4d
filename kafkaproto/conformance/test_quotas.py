"""Tests of client quotas and throttling over a socket: quota windows (Q-2 to Q-7), muting (KIP-219), fetches and request time.

If the cluster runs on a clock that the test advances, every throttle time must be exact. On the wall clock, it may differ by what
`Payer.allowed_ms` returns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from kafkaproto.conformance.needs import REQUEST_MAX_BYTES
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
"""The user of every client on a listener without authentication."""
ROUNDED_MS = 2
"""The tolerance in ms for rounding: client and broker each round a time to whole milliseconds."""
BEFORE_4 = pytest.mark.releases(before="4.0")
"""Marks a test or parameter for releases before Kafka 4, which does not serve Produce versions before 3 (KIP-896)."""


class Payer:
    """A client with its own client id, quota and connection, which also computes the expected throttle times of its requests."""

    def __init__(self, subject: Subject, topic: Topic, bound: float, client_id: str | None = None) -> None:
        self.subject, self.topic, self.bound = subject, topic, bound
        self.client_id = subject.new_name("payer") if client_id is None else client_id
        self.connection = subject.connect(0, self.client_id)
        self.rate = SlowRate()
        self.taken_ms = 0.0

    @property
    def entity(self) -> Entity:
        return {CLIENT: self.client_id}

    def again(self) -> None:
        """Open a new connection with the same client id, because the broker has muted the old connection."""
        self.connection = self.subject.connect(0, self.client_id)

    def produce(self, request_bytes: int, acks: int = 1) -> int:
        """Send a Produce request of this size in bytes. Returns the throttle time in the response, in ms.

        Checks that the throttle time has the expected value. acks: the required acknowledgements in the request.
        """
        now_ms = round(self.subject.now_ms())
        request = produce_of_bytes(self.connection, self.topic.name, request_bytes, acks=acks)
        self.rate.record(request_bytes, now_ms)
        expected = self.rate.throttle_ms(now_ms, self.bound)
        response = self.subject.ask(self.connection, request, VERSION)
        assert response.responses[0].partition_responses[0].error_code == 0
        actual_ms = int(response.throttle_time_ms)
        assert abs(actual_ms - expected) <= self.allowed_ms(now_ms), (actual_ms, expected)
        return actual_ms

    def allowed_ms(self, sent_ms: float) -> float:
        """Return by how many milliseconds the throttle time in the response that has just arrived may differ from its expected value.

        Returns 0 if the cluster runs on a clock that the test advances. On the wall clock, the broker handles a request at an unknown time between
        its sending and its response. The result is therefore the sum of three values: the total duration of this client's requests so far, but at
        most `Subject.slack_ms`; `Subject.jitter_ms`; and `ROUNDED_MS` for rounding. sent_ms: when the last request was sent.
        """
        self.taken_ms += self.subject.now_ms() - sent_ms
        if not self.subject.clock_slack_ms:
            return 0.0
        return min(self.taken_ms, self.subject.slack_ms) + self.subject.jitter_ms + ROUNDED_MS


VERSION = 9


# ---- the arithmetic ----------------------------------------------------------------------------------------------------------


@pytest.mark.needs(at_least={"socket.request.max.bytes": REQUEST_MAX_BYTES})
@pytest.mark.rule("Q-6", "Q-7", "T-1")
@pytest.mark.parametrize(
    ("bound", "request_bytes", "throttle_ms"),
    [(10_000, 105_000, 500), (10_000, 100_000, 0), (10_000, 100_010, 1), (1024, 20_480, 10_000), (1000, 15_000, 5000)],
)
def test_throttle_time_is_the_bytes_beyond_10_seconds_of_quota_divided_by_the_quota(
    subject: Subject, bound: int, request_bytes: int, throttle_ms: int
) -> None:
    """The throttle time of a first request is the number of bytes beyond those that the quota allows in ten seconds, divided by the quota.

    bound: the quota in bytes per second. request_bytes: the size of the request. throttle_ms: the expected throttle time, exact on any clock because
    nothing was recorded before.
    """
    payer = Payer(subject, new_topic(subject), bound)
    with limited(subject, (payer.entity, {PRODUCE: float(bound)})):
        request = produce_of_bytes(payer.connection, payer.topic.name, request_bytes)
        actual_ms = subject.ask(payer.connection, request, VERSION).throttle_time_ms
        assert abs(actual_ms - throttle_ms) <= subject.jitter_ms


@pytest.mark.needs(brokers=2)
@pytest.mark.rule("Q-0")
def test_throttled_client_may_use_its_whole_quota_at_another_broker(subject: Subject) -> None:
    topics = [new_topic(subject, assignment={0: [broker_id]}) for broker_id in (0, 1)]
    client_id = subject.new_name("payer")
    with limited(subject, ({CLIENT: client_id}, {PRODUCE: 10_000.0})):
        requests = ((topics[0], 105_000, True), (topics[1], 90_000, False), (topics[1], 30_000, True))
        for topic, request_bytes, is_throttled in requests:
            connection = topic.connect(client_id=client_id)
            request = produce_of_bytes(connection, topic.name, request_bytes)
            assert (subject.ask(connection, request, VERSION).throttle_time_ms > 0) == is_throttled


class Step(NamedTuple):
    """One request of a scenario: the client `who` sends it `at_ms` milliseconds after the start.

    who: the name of the client, whose quota is in `BOUNDS`. request_bytes: the size of the request. exact_ms: the expected throttle time in ms on a
    clock that the test advances; on the wall clock, it may differ.
    """

    at_ms: int
    who: str
    request_bytes: int
    exact_ms: int


BOUNDS = {"burst": 1000.0, "rested": 1000.0, "steady": 500.0, "quiet": 1000.0}
"""Maps the name of a client to the client's quota in bytes per second. The clients send the requests of `TIMELINE`.

burst, rested: the first request of each is throttled for 5 s. When the 5 s are over, burst sends its second request at once, rested waits 6 s more.
steady: stays within its quota, then sends one larger request. quiet: sends nothing.
"""
TIMELINE = sorted(
    [
        Step(0, "burst", 15_000, 5000),
        Step(5000, "burst", 1000, 6000),  # waiting earns no credit: this is not a token bucket
        Step(0, "rested", 15_000, 5000),
        Step(11_000, "rested", 1000, 0),
        *(Step(1000 * second, "steady", 400, 0) for second in range(10)),
        Step(9500, "steady", 2300, 2100),  # ClientQuotaManagerTest.testQuotaViolation
    ]
)


@pytest.mark.rule("Q-2", "Q-3", "Q-4", "Q-7")
def test_throttle_times_equal_those_computed_by_a_simple_model_of_kafkas_quota_rate(subject: Subject) -> None:
    """Clients send the requests of `TIMELINE`. Each throttle time must equal that of `SlowRate`, a model of Kafka's quota rate.

    One test covers all clients. Because the clients send their requests in the same period, the test lasts only as long as the slowest client: 11
    seconds.
    """
    topic = new_topic(subject)
    payers = {who: Payer(subject, topic, bound) for who, bound in BOUNDS.items()}
    with limited(subject, *((p.entity, {PRODUCE: p.bound}) for p in payers.values())):
        begun = subject.now_ms()
        for step in TIMELINE:
            # On the wall clock a request cannot hit a window's end to the millisecond: send it a little later and compute for that time.
            due = begun + step.at_ms + (subject.clock_slack_ms * 2 if step.at_ms else 0)
            subject.pass_ms(max(0, due - subject.now_ms()))
            payer = payers[step.who]
            payer.again()
            actual_ms = payer.produce(step.request_bytes)
            if not subject.clock_slack_ms:
                assert actual_ms == step.exact_ms, step


@pytest.mark.rule("Q-10")
def test_next_request_after_a_byte_quota_is_lowered_is_throttled_for_earlier_bytes(subject: Subject) -> None:
    """A client has sent 27.5 kB. Later requests are throttled under a quota of 500 B/s, but neither under 30 kB/s nor without a quota.

    Corresponds to Kafka's test `ClientQuotaManagerTest.testQuotaParsing`.
    """
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
    assert payer.produce(200) == 0  # the quota is removed


@pytest.mark.rule("Q-11", "T-12", "T-3")
def test_failed_and_acks_0_produces_are_charged_to_the_byte_quota(subject: Subject) -> None:
    """A Produce request to an unknown partition and a Produce request with acks=0 are both charged."""
    payer = Payer(subject, new_topic(subject), 1000.0)
    with limited(subject, (payer.entity, {PRODUCE: 1000.0})):
        request = produce(payer.topic.name, batch_of_bytes(11_000), partition=77)
        size = len(payer.connection.frame(request, VERSION)) - LENGTH_BYTES
        payer.connection.sent.clear()
        response = subject.ask(payer.connection, request, VERSION)
        assert response.responses[0].partition_responses[0].error_code == 3
        assert abs(response.throttle_time_ms - (size - 10_000)) <= subject.jitter_ms
        payer.again()
        begun = subject.now_ms()
        subject.send(payer.connection, produce(payer.topic.name, batch(b"x"), acks=0), VERSION)
        del payer.connection.sent[max(payer.connection.sent)]
        subject.send(payer.connection, MetadataRequest([]), 9)
        subject.answer(payer.connection)
        waited = subject.now_ms() - begun
        assert size - 10_000 - subject.jitter_ms - subject.clock_slack_ms <= waited <= size + 1000 + subject.slack_ms


@pytest.mark.needs(at_least={"socket.request.max.bytes": REQUEST_MAX_BYTES})
@pytest.mark.rule("T-12", "Q-11")
def test_produce_of_bytes_that_are_no_batch_is_not_charged_to_the_byte_quota(subject: Subject) -> None:
    """A Produce request whose bytes are no batch, only zeros, is rejected before its bytes are charged (`KafkaApis.handleError`)."""
    payer = Payer(subject, new_topic(subject), 1000.0)
    with limited(subject, (payer.entity, {PRODUCE: 1000.0})):
        response = subject.ask(payer.connection, produce(payer.topic.name, bytes(104_000)), VERSION)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.CORRUPT_MESSAGE
        assert response.throttle_time_ms == 0
        payer.produce(200)


# ---- the mute ----------------------------------------------------------------------------------------------------------------


@pytest.mark.needs(at_least={"socket.request.max.bytes": REQUEST_MAX_BYTES})
@pytest.mark.rule("T-1", "T-6", "T-7", "T-8")
@pytest.mark.parametrize("version", [pytest.param(0, marks=BEFORE_4), pytest.param(1, marks=BEFORE_4), 5, 6, 9, 11])
def test_throttled_produce_gets_its_response_at_once_but_delays_the_next_response(
    subject: Subject, version: int
) -> None:
    """A throttled Produce gets its response at once. The next request of the connection gets its response after the throttle time.

    This holds in every version, even if the response has no field for the throttle time. Other connections of the client are not muted.
    """
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
        sent = [
            subject.send(payer.connection, data, version),
            subject.send(payer.connection, MetadataRequest([]), 4),
        ]
        gap_ms = payer.connection.sent_ms(sent[1]) - payer.connection.sent_ms(sent[0])
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
        # The mute begins after the first request was sent. A busy client sends the second one `gap_ms` later.
        assert throttle_ms - subject.early_ms - subject.jitter_ms <= gap_ms + pipelined.elapsed_ms
        assert pipelined.elapsed_ms <= throttle_ms + 100 + subject.slack_ms


@pytest.mark.rule("T-9", "X-5")
def test_throttle_time_of_a_throttled_client_grows_even_if_the_client_reconnects(subject: Subject) -> None:
    payer = Payer(subject, new_topic(subject), 1000.0)
    with limited(subject, (payer.entity, {PRODUCE: 1000.0})):
        first = payer.produce(12_000)
        payer.connection.close()
        payer.again()
        assert payer.produce(3000) > first > 0


# ---- fetch -------------------------------------------------------------------------------------------------------------------


def fetched(subject: Subject, payer: Payer, version: int = 11) -> tuple[Any, int]:
    """Fetch partition 0 of the payer's topic from offset 0, on the payer's connection.

    payer: a client with its own client id and quota. version: the version of the Fetch request. Returns the response and the time in ms at which the
    request was sent.
    """
    now_ms = round(subject.now_ms())
    response = subject.ask(payer.connection, fetch((payer.topic.name, 0, 0), version=version), version)
    return response, now_ms


@pytest.mark.rule("T-4", "Q-12", "Q-13", "Q-14")
def test_fetch_above_the_quota_is_empty_and_delays_next_fetch_by_the_throttle_time(subject: Subject) -> None:
    """A fetch is throttled for 50 ms and returns no records: its response would be 50 bytes larger than 1000 B/s allow in ten seconds.

    The next fetch waits for the end of the throttle time and returns the records.
    """
    topic = new_topic(subject)
    payer = Payer(subject, topic, 1000.0)
    overhead = len(sized(subject, topic))
    topic.fill(batch_of_bytes(10_050 - overhead - LENGTH_BYTES))
    with limited(subject, (payer.entity, {FETCH: 1000.0})):
        sent = [subject.send(payer.connection, fetch((topic.name, 0, 0)), 11) for _ in range(2)]
        gap_ms = payer.connection.sent_ms(sent[1]) - payer.connection.sent_ms(sent[0])
        throttled, delivered = subject.answer(payer.connection), subject.answer(payer.connection)
    assert abs(throttled.message.throttle_time_ms - 50) <= subject.jitter_ms
    assert (throttled.message.error_code, throttled.message.responses) == (0, [])
    assert gap_ms + delivered.elapsed_ms >= 50 - max(subject.jitter_ms, subject.early_ms)
    assert (delivered.message.throttle_time_ms, sizes(delivered.message)) == (0, [10_050 - overhead - LENGTH_BYTES])


def sized(subject: Subject, topic: Topic) -> bytes:
    """Return the encoded body of a Fetch response for a topic without records.

    A response with records is longer by exactly the size of the records. From the length of this body, a test therefore computes how many bytes of
    records give a response of a chosen size.
    """
    connection = subject.connect(0, "free")
    subject.send(connection, fetch((topic.name, 0, 0), min_bytes=0), 11)
    return subject.answer(connection).data[4:]


@pytest.mark.rule("Q-14")
def test_fetch_larger_than_10_seconds_of_quota_is_throttled_and_empty_each_time(subject: Subject) -> None:
    """A response of 4096 bytes exceeds what a quota of 250 B/s allows in ten seconds, so each repetition of the fetch is throttled and empty."""
    topic = new_topic(subject)
    payer = Payer(subject, topic, 250.0)
    overhead = len(sized(subject, topic))
    topic.fill(batch_of_bytes(4096 - overhead - LENGTH_BYTES))
    with limited(subject, (payer.entity, {FETCH: 250.0})):
        for number in range(2 if subject.clock_slack_ms else 6):
            now_ms = round(subject.now_ms())
            payer.rate.record(4096, now_ms)
            expected = payer.rate.throttle_ms(now_ms, 250.0)
            payer.rate.record(-4096, now_ms)
            response = subject.ask(payer.connection, fetch((topic.name, 0, 0)), 11)
            assert response.responses == []
            assert abs(response.throttle_time_ms - expected) <= max(payer.allowed_ms(now_ms), subject.jitter_ms)
            if number == 0:
                assert abs(response.throttle_time_ms - 6384) <= subject.jitter_ms
            if not subject.clock_slack_ms:
                subject.pass_ms(response.throttle_time_ms)
            else:
                payer.again()


# ---- request time ------------------------------------------------------------------------------------------------------------


def throttled_for_time(subject: Subject, client_id: str) -> int:
    """Send ApiVersions requests until one is throttled by the request quota, and return its throttle time in ms."""
    for _ in range(500):
        connection = subject.connect(0, client_id)
        for _ in range(5):
            if actual_ms := subject.ask(connection, ApiVersionsRequest(), 2).throttle_time_ms:
                return int(actual_ms)
        connection.close()
    raise AssertionError(f"no request of client {client_id} was throttled, although its request quota is exceeded")


@pytest.mark.rule("T-2", "Q-6", "Q-15")
def test_request_percentage_quota_throttles_a_request_by_at_most_1000_ms(subject: Subject) -> None:
    """The request quota is a ten-thousandth of one thread's time. Each throttle time is at most 1000 ms, the length of a window."""
    payer = Payer(subject, new_topic(subject), 0.0)
    with limited(subject, (payer.entity, {PERCENT: 0.01})), subject.request_cost("ApiVersions", 1.5):
        actual_ms = [throttled_for_time(subject, payer.client_id) for _ in range(3)]
    assert min(actual_ms) > 0 and max(actual_ms) <= 1000


@pytest.mark.rule("T-3")
def test_throttle_time_of_a_produce_is_the_longer_of_byte_and_request_throttle(subject: Subject) -> None:
    """A client exceeds a byte quota and a request quota. The response has the throttle time of the byte quota, which is larger."""
    payer = Payer(subject, new_topic(subject), 1.0)
    with limited(subject, (payer.entity, {PRODUCE: 1.0, PERCENT: 0.01})), subject.request_cost("Produce", 100.0):
        assert payer.produce(500) > 400_000
