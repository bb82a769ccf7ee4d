"""Incremental fetch sessions (S-1 to S-14), with the numbers of Kafka's FetchSessionTest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaproto.broker.fetch.session import (
    IncrementalContext,
    PartitionRequest,
    SessionCache,
    SessionFields,
    SessionlessContext,
    next_epoch,
)

Key = tuple[str, int]
FOO0, FOO1, BAR0 = ("foo", 0), ("foo", 1), ("bar", 0)
OK, ID_NOT_FOUND, WRONG_EPOCH, TOPIC_ID_ERROR = 0, 70, 71, 106


@dataclass
class Result:
    has_records: bool = False
    high_watermark: int = 10
    log_start_offset: int = 0
    preferred_read_replica: int = -1
    error_code: int = 0
    diverging: bool = False


def request(offset: int = 0) -> PartitionRequest:
    return PartitionRequest(offset, 100)


def requests(*keys: Key) -> list[tuple[Key, PartitionRequest]]:
    return [(key, request()) for key in keys]


class Fetcher:
    """A client that fetches through one session cache; `log` is the result of each partition."""

    def __init__(self, slots: int = 10, eviction_age_ms: int = 100) -> None:
        self.cache = SessionCache(Random(1), slots, eviction_age_ms)
        self.log: dict[Key, Result] = {}
        self.now_ms = 0

    def begin(
        self,
        session_id: int,
        epoch: int,
        listed: Iterable[tuple[Key, PartitionRequest]] = (),
        forgotten: Sequence[Key] = (),
        topic_ids: bool = False,
        privileged: bool = False,
    ) -> Any:
        return self.cache.begin(session_id, epoch, listed, forgotten, topic_ids, privileged, self.now_ms)

    def read(self, context: Any) -> list[tuple[Key, Result]]:
        return [(key, self.log.get(key, Result())) for key, _ in context.partitions()]

    def fetch(self, session_id: int, epoch: int, *args: Any, **more: Any) -> SessionFields[Any, Any]:
        context = self.begin(session_id, epoch, *args, **more)
        results = self.read(context)
        included = list(context.included(results))
        response = context.commit(results, self.now_ms)
        # The size charged to a quota is the size sent.
        assert list(response.partitions) == included
        return response

    def order(self, session_id: int) -> list[Key]:
        session = self.cache.get(session_id)
        assert session is not None
        return list(session.partitions)  # type: ignore[arg-type]


def keys(answer: SessionFields[Any, Any]) -> list[Key]:
    return [key for key, _ in answer.partitions]


@pytest.mark.rule("S-14")
def test_fetch_with_unknown_session_id_or_wrong_session_epoch_gets_an_error() -> None:
    """Kafka's FetchSessionTest.testFetchRequests."""
    f = Fetcher()
    full = f.fetch(0, 0, requests(FOO0, FOO1))
    session_id = full.session_id
    assert full.error_code == OK and session_id > 0 and keys(full) == [FOO0, FOO1]
    assert f.fetch(session_id, 5) == (WRONG_EPOCH, 0, ())
    assert f.fetch(session_id + 1, 1) == (ID_NOT_FOUND, 0, ())
    assert f.fetch(session_id, 1) == (OK, session_id, [])
    assert f.fetch(session_id, 5) == (WRONG_EPOCH, 0, ())
    assert f.begin(session_id, 2).throttled() == (OK, session_id, ())
    closing = f.fetch(session_id, -1, requests(FOO0))
    assert (closing.session_id, keys(closing), len(f.cache)) == (0, [FOO0], 0)


@pytest.mark.rule("S-1")
def test_fetch_with_session_epoch_0_creates_a_session_but_epoch_minus_1_does_not() -> None:
    f = Fetcher()
    assert f.fetch(0, -1, requests(FOO0)).session_id == 0
    first = f.fetch(0, 0, requests(FOO0)).session_id
    second = f.fetch(first, 0, requests(FOO1)).session_id
    assert second not in (0, first) and f.cache.get(first) is None and len(f.cache) == 1


@pytest.mark.rule("S-2")
def test_fetch_session_ids_are_positive_unique_and_reproducible_from_the_seed() -> None:
    first, second = Fetcher(50), Fetcher(50)
    ids = [first.fetch(0, 0, requests(FOO0)).session_id for _ in range(50)]
    assert ids == [second.fetch(0, 0, requests(FOO0)).session_id for _ in range(50)]
    assert len(set(ids)) == 50 and all(0 < i < 2**31 for i in ids)


@pytest.mark.rule("S-3")
def test_fetch_with_wrong_session_epoch_leaves_the_session_unchanged() -> None:
    f = Fetcher()
    session_id = f.fetch(0, 0, requests(FOO0)).session_id
    f.fetch(session_id, 7, [(FOO0, request(99))], [FOO0])
    assert dict(f.begin(session_id, 1).partitions()) == {FOO0: request(0)}


@pytest.mark.rule("S-3")
def test_fetch_session_that_began_with_topic_names_rejects_topic_ids_and_vice_versa() -> None:
    f = Fetcher()
    with_names = f.fetch(0, 0, requests(FOO0)).session_id
    with_ids = f.fetch(0, 0, requests(FOO0), topic_ids=True).session_id
    assert f.fetch(with_names, 1, topic_ids=True) == (TOPIC_ID_ERROR, 0, ())
    assert f.fetch(with_ids, 1) == (TOPIC_ID_ERROR, 0, ())
    assert f.fetch(with_ids, 2) == (WRONG_EPOCH, 0, ())
    assert f.fetch(with_names, 1).error_code == OK


@pytest.mark.rule("S-4")
def test_partitions_of_a_fetch_session_can_be_added_or_updated_or_removed() -> None:
    f = Fetcher()
    listed = [(FOO0, PartitionRequest(5, 50, 1, 2, 3)), (FOO1, request(6))]
    session_id = f.fetch(0, 0, listed).session_id
    context = f.begin(session_id, 1, [(FOO0, request(8)), (BAR0, request(1))])
    assert list(context.partitions()) == [(FOO0, request(8)), (FOO1, request(6)), (BAR0, request(1))]
    context = f.begin(session_id, 2, [(FOO1, request(9))], [FOO0, FOO1])
    assert list(context.partitions()) == [(BAR0, request(1))]


@pytest.mark.rule("S-4")
def test_fetch_session_epoch_wraps_from_the_largest_int32_to_one() -> None:
    assert [next_epoch(e) for e in (0, 1, 2**31 - 2, 2**31 - 1)] == [1, 2, 2**31 - 1, 1]
    f = Fetcher()
    session_id = f.fetch(0, 0, requests(FOO0)).session_id
    session = f.cache.get(session_id)
    assert session is not None
    session.epoch = 2**31 - 1
    assert f.fetch(session_id, 2**31 - 1).error_code == OK
    assert f.fetch(session_id, 1).error_code == OK


@pytest.mark.rule("S-5")
def test_fetch_session_is_closed_when_a_request_removes_all_of_its_partitions() -> None:
    """Kafka's FetchSessionTest.testZeroSizeFetchSession."""
    f = Fetcher()
    session_id = f.fetch(0, 0, requests(FOO0, FOO1)).session_id
    assert f.fetch(session_id, 1, (), [FOO0, FOO1]) == (OK, 0, [])
    assert len(f.cache) == 0 and f.cache.partition_count == 0
    assert f.fetch(session_id, 2).error_code == ID_NOT_FOUND


NEWS = [
    Result(has_records=True),
    Result(high_watermark=11),
    Result(high_watermark=9),
    Result(log_start_offset=1),
    Result(preferred_read_replica=2),
    Result(preferred_read_replica=0),
    Result(error_code=6),
    Result(diverging=True),
]


@pytest.mark.rule("S-6")
@pytest.mark.parametrize("result", NEWS, ids=repr)
def test_incremental_fetch_returns_only_partitions_with_records_or_changed_fields(result: Result) -> None:
    f = Fetcher()
    session_id = f.fetch(0, 0, requests(FOO0, FOO1)).session_id
    f.log[FOO1] = result
    assert keys(f.fetch(session_id, 1)) == [FOO1]
    f.log[FOO1] = Result(high_watermark=result.high_watermark, log_start_offset=result.log_start_offset)
    # Repeated values are not reported; the end of an error is.
    assert keys(f.fetch(session_id, 2)) == ([FOO1] if result.error_code else [])
    assert keys(f.fetch(session_id, 3)) == []


@pytest.mark.rule("S-6")
def test_incremental_fetch_returns_a_partition_that_no_longer_has_an_error() -> None:
    f = Fetcher()
    f.log[FOO0] = Result(error_code=1)
    session_id = f.fetch(0, 0, requests(FOO0)).session_id
    f.log[FOO0] = Result()
    assert keys(f.fetch(session_id, 1)) == [FOO0]


@pytest.mark.rule("S-8")
def test_parked_fetch_gets_an_epoch_error_after_a_newer_fetch_of_the_same_session() -> None:
    f = Fetcher()
    session_id = f.fetch(0, 0, requests(FOO0)).session_id
    parked = f.begin(session_id, 1)
    assert f.fetch(session_id, 2).error_code == OK
    f.log[FOO0] = Result(has_records=True, high_watermark=12)
    results = [(FOO0, f.log[FOO0])]
    assert list(parked.included(results)) == []
    assert parked.commit(results, 0) == (WRONG_EPOCH, session_id, ())
    assert parked.throttled() == (WRONG_EPOCH, session_id, ())
    assert keys(f.fetch(session_id, 3)) == [FOO0]


@pytest.mark.rule("S-9")
def test_partitions_that_returned_records_move_to_the_end_of_the_fetch_session_order() -> None:
    """Kafka's FetchSessionTest.testDeprioritizesPartitionsWithRecordsOnly."""
    f = Fetcher()
    session_id = f.fetch(0, 0, requests(FOO0, FOO1, BAR0)).session_id
    f.log = {FOO0: Result(high_watermark=60), FOO1: Result(has_records=True, high_watermark=60)}
    assert keys(f.fetch(session_id, 1)) == [FOO0, FOO1]
    assert f.order(session_id) == [FOO0, BAR0, FOO1]
    # Partitions that are new in a session go to the end.
    f.log = {}
    f.fetch(session_id, 2, requests(("new", 0)))
    assert f.order(session_id) == [FOO0, BAR0, FOO1, ("new", 0)]


@pytest.mark.rule("S-10")
def test_next_fetch_returns_partitions_that_a_throttled_incremental_fetch_omitted() -> None:
    f = Fetcher()
    session_id = f.fetch(0, 0, requests(FOO0, FOO1)).session_id
    f.log = {FOO0: Result(has_records=True, high_watermark=20), FOO1: Result(error_code=6, high_watermark=-1)}
    context = f.begin(session_id, 1, [(FOO1, request(4))])
    results = f.read(context)
    assert [key for key, _ in context.included(results)] == [FOO0, FOO1]
    assert context.throttled() == (OK, session_id, ())
    # The request side has moved on to epoch 2 and the new offset, and unreported changes are reported again.
    assert f.order(session_id) == [FOO0, FOO1]
    context = f.begin(session_id, 2)
    assert dict(context.partitions())[FOO1] == request(4)
    assert [key for key, _ in context.commit(results, 0).partitions] == [FOO0, FOO1]


@pytest.mark.rule("S-10")
def test_throttled_fetch_response_has_error_code_0_and_creates_no_fetch_session() -> None:
    f = Fetcher()
    assert f.begin(0, 0, requests(FOO0)).throttled() == (OK, 0, ())
    assert len(f.cache) == 0
    assert f.begin(77, 3).throttled() == (OK, 0, ())


@pytest.mark.rule("S-11")
def test_each_fetch_session_response_lists_partitions_with_error_unknown_topic_id() -> None:
    f = Fetcher()
    f.log[BAR0] = Result(error_code=100, high_watermark=-1, log_start_offset=-1)
    full = f.fetch(0, 0, requests(FOO0, BAR0), topic_ids=True)
    assert keys(f.fetch(full.session_id, 1, topic_ids=True)) == [BAR0]
    f.log[BAR0] = Result()
    assert keys(f.fetch(full.session_id, 2, topic_ids=True)) == [BAR0]
    assert keys(f.fetch(full.session_id, 3, topic_ids=True)) == []


@pytest.mark.rule("S-14")
def test_incremental_fetch_v12_returns_a_partition_that_no_longer_has_an_error() -> None:
    """Kafka's FetchSessionTest.testCreateIncrementalFetchWithPartitionsInErrorV12."""
    f = Fetcher()
    f.log[BAR0] = Result(error_code=3, high_watermark=-1, log_start_offset=-1)
    full = f.fetch(0, 0, requests(FOO0, FOO1, BAR0))
    assert [r.error_code for _, r in full.partitions] == [0, 0, 3]
    again = f.fetch(full.session_id, 1)
    assert [(k, r.error_code) for k, r in again.partitions] == [(BAR0, 3)]
    f.log[BAR0] = Result()
    healed = f.fetch(full.session_id, 2)
    assert [(k, r.error_code) for k, r in healed.partitions] == [(BAR0, 0)]
    assert keys(f.fetch(full.session_id, 3)) == []


@pytest.mark.rule("F-6")
def test_partition_listed_twice_in_a_fetch_is_read_once_from_the_offset_listed_last() -> None:
    f = Fetcher()
    context = f.begin(0, -1, [(FOO0, request(1)), (FOO1, request(2)), (FOO0, request(3))])
    assert list(context.partitions()) == [(FOO0, request(3)), (FOO1, request(2))]


@pytest.mark.rule("S-12")
def test_fetch_with_a_session_cache_of_zero_slots_succeeds_without_a_session() -> None:
    f = Fetcher(slots=0)
    response = f.fetch(0, 0, requests(FOO0))
    assert (response.session_id, keys(response)) == (0, [FOO0])


def many(size: int) -> list[tuple[Key, PartitionRequest]]:
    return requests(*(("many", n) for n in range(size)))


def make(f: Fetcher, size: int, at_ms: int, privileged: bool = False) -> int:
    f.now_ms = at_ms
    return f.fetch(0, 0, many(size), privileged=privileged).session_id


def touch(f: Fetcher, session_id: int, at_ms: int) -> None:
    session = f.cache.get(session_id)
    assert session is not None
    f.cache.touch(session, at_ms)


def alive(f: Fetcher, *ids: int) -> list[bool]:
    return [f.cache.get(i) is not None for i in ids]


@pytest.mark.rule("S-13")
def test_full_session_cache_evicts_only_sessions_older_than_the_eviction_age() -> None:
    """Kafka's FetchSessionTest.testSessionCache."""
    f = Fetcher(slots=3, eviction_age_ms=100)
    first, second, third = make(f, 10, 0), make(f, 20, 10), make(f, 30, 20)
    assert all((first, second, third))
    assert make(f, 40, 30) == 0
    assert make(f, 5, 40) == 0
    assert alive(f, first, second, third) == [True] * 3 and f.cache.partition_count == 60
    touch(f, first, 200)
    four = make(f, 11, 210)
    assert four and alive(f, first, second, third, four) == [True, False, True, True]
    touch(f, first, 400)
    touch(f, third, 390)
    touch(f, four, 400)
    five = make(f, 50, 410)
    assert five and alive(f, first, third, four, five) == [False, True, True, True]
    assert make(f, 5, 410) == 0
    privileged = make(f, 5, 410, privileged=True)
    assert privileged and alive(f, third, four, five, privileged) == [True, False, True, True]
    assert f.cache.evictions == 3 and f.cache.partition_count == 30 + 50 + 5


@pytest.mark.rule("S-13")
def test_full_session_cache_evicts_the_least_recently_used_fetch_session() -> None:
    """Kafka's FetchSessionTest.testFetchSessionExpiration."""
    f = Fetcher(slots=2, eviction_age_ms=1000)
    first, second = make(f, 2, 0), make(f, 2, 500)
    touch(f, first, 500)
    assert alive(f, first, second) == [True, True]
    touch(f, first, 1000)
    # 1001 ms after its last use the second session is stale; the first is not.
    three = make(f, 2, 1501)
    assert three and alive(f, first, second, three) == [True, False, True]


@pytest.mark.rule("S-13")
def test_fetch_session_with_eviction_age_1000_ms_is_evicted_after_1001_not_1000_ms() -> None:
    f = Fetcher(slots=1, eviction_age_ms=1000)
    make(f, 50, 0)
    assert make(f, 2, 1000) == 0
    assert make(f, 2, 1001) != 0


@pytest.mark.rule("S-13")
def test_new_follower_fetch_session_may_evict_consumer_fetch_sessions_of_any_age() -> None:
    """Kafka's FetchSessionTest.testPrivilegedSessionHandling."""
    f = Fetcher(slots=2, eviction_age_ms=1000)
    first, second = make(f, 2, 0, privileged=True), make(f, 2, 500)
    # The second is more recent, but the first belongs to a follower and stays.
    three = make(f, 2, 1000, privileged=True)
    assert alive(f, first, second, three) == [True, False, True]
    four = make(f, 2, 1501, privileged=True)
    assert alive(f, first, three, four) == [False, True, True]


@pytest.mark.rule("S-13")
def test_new_follower_session_evicts_only_smaller_follower_sessions_older_than_1_s() -> None:
    f = Fetcher(slots=2, eviction_age_ms=1000)
    first, second = make(f, 2, 0, privileged=True), make(f, 1, 500, privileged=True)
    assert make(f, 9, 1000) == 0 and make(f, 9, 1000, privileged=True) == 0
    touch(f, first, 1001)
    touch(f, second, 1001)
    # The first was created more than 1000 ms ago, the second was not. An equal size does not evict.
    assert make(f, 9, 1001) == 0
    assert make(f, 2, 1001, privileged=True) == 0
    three = make(f, 3, 1001, privileged=True)
    assert three and alive(f, first, second) == [False, True]


@pytest.mark.rule("S-13")
def test_session_cache_evicts_the_smallest_session_id_among_equally_old_sessions() -> None:
    f = Fetcher(slots=5, eviction_age_ms=100)
    ids = [make(f, 1, 0) for _ in range(5)]
    make(f, 1, 101)
    assert [i for i in ids if f.cache.get(i) is None] == [min(ids)]


class SessionMachine(RuleBasedStateMachine):
    """A client that remembers the returned partition data, which must equal the true data after every response."""

    def __init__(self) -> None:
        super().__init__()
        self.f = Fetcher()
        self.session_id = 0
        self.epoch = 0
        self.listed: dict[Key, int] = {("t", 0): 0}
        self.believed: dict[Key, tuple[int, int, int]] = {}
        for n in range(4):
            self.f.log["t", n] = Result(high_watermark=0)

    @rule(n=st.integers(0, 3), by=st.integers(0, 3))
    def append(self, n: int, by: int) -> None:
        self.f.log["t", n].high_watermark += by

    @rule(n=st.integers(0, 3), code=st.sampled_from([0, 3, 6]))
    def fail(self, n: int, code: int) -> None:
        self.f.log["t", n].error_code = code

    @rule(n=st.integers(0, 3), offset=st.integers(0, 9), throttled=st.booleans())
    def fetch_with(self, n: int, offset: int, throttled: bool) -> None:
        self.listed["t", n] = offset
        self._fetch({("t", n): offset}, [], throttled)

    @precondition(lambda self: len(self.listed) > 1)
    @rule(data=st.data(), throttled=st.booleans())
    def forget_one(self, data: st.DataObject, throttled: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.listed)))
        del self.listed[key]
        self.believed.pop(key, None)
        self._fetch({}, [key], throttled)

    def _fetch(self, listed: dict[Key, int], forgotten: list[Key], throttled: bool) -> None:
        full = self.session_id == 0
        listed = self.listed if full else listed
        context = self.f.begin(
            self.session_id, self.epoch, [(k, request(o)) for k, o in listed.items()], [] if full else forgotten
        )
        assert isinstance(context, SessionlessContext if full else IncrementalContext)
        assert dict(context.partitions()) == {k: request(o) for k, o in self.listed.items()}
        results = self.f.read(context)
        included = list(context.included(results))
        response = context.throttled() if throttled else context.commit(results, 0)
        assert response.error_code == 0 and list(response.partitions) == ([] if throttled else included)
        for key, result in response.partitions:
            self.believed[key] = (result.error_code, result.high_watermark, result.log_start_offset)
        if not throttled:
            for key in self.listed:
                true = self.f.log[key]
                assert self.believed[key] == (true.error_code, true.high_watermark, true.log_start_offset)
        if response.session_id:
            self.session_id = response.session_id
            self.epoch = next_epoch(self.epoch)

    @invariant()
    def counted(self) -> None:
        sessions = self.f.cache
        assert len(sessions) == (1 if self.session_id else 0)
        assert sessions.partition_count == (len(self.listed) if self.session_id else 0)


TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
