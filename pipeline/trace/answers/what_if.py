"""The answer "what-if": how long each client would have been throttled if it had had another byte quota.

Spark replays the recorded requests of each client under each of several quotas, and sums up the throttle times. The result also has the
throttle time as a percentage of the time for which the client's connections were in use. Spark sorts the requests by client, so that memory holds
only some requests of one client at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkaproto import releases
from kafkaproto.broker.quota.windows import DEFAULT_SAMPLES, DEFAULT_WINDOW_MS
from kafkaproto.pipeline.trace.answers.answer import GIVEN_UP, Answer, Query
from kafkaproto.pipeline.trace.answers.replay import Replay, Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafkaproto.pipeline.trace.audit.rule import Tables

MB = 1_000_000
QUOTAS = (1.0 * MB, 2.0 * MB, 5.0 * MB, 10.0 * MB)
QUOTA_FACTORS = (0.5, 1.0, 2.0)
"""What-if quotas as multiples of the recorded quota: each client is replayed with these, in addition to some fixed quotas (`QUOTAS`)."""

CHARGED = f"""
    WITH kept AS (
        SELECT /*+ BROADCAST(r) */ r.run, r.seq, min(e.clock_ms) AS charged_ms,
               sum(try_cast(get_json_object(e.facts, '$.throttle_ms') AS bigint)) AS kept_ms
        FROM {{requests}} r JOIN {{events}} e ON e.run = r.run AND try_cast(get_json_object(e.facts, '$.of') AS bigint) = r.seq
        WHERE NOT has_response AND applied_throttle_ms = 0 AND (throttle_quota = api OR throttle_quota = 'Request' AND api = 'Produce')
          AND e.kind = 'throttle'
        GROUP BY r.run, r.seq
    ), counted AS (
        SELECT /*+ BROADCAST(kept) */ run, broker, api, coalesce(client_id, '') AS client_id, conn, seq,
               coalesce(charged_ms, IF(held, clock_ms - applied_throttle_ms, clock_ms), CAST(ready_ns / 1000000 AS bigint)) AS clock_ms,
               coalesce(kept_ms, applied_throttle_ms, throttle_ms, 0) AS waited_ms, throttle_quota = api AS by_this_quota,
               api = 'Fetch' AND coalesce(applied_throttle_ms, throttle_ms) > 0 AND NOT coalesce(held, false) AS empty,
               CASE WHEN throttle_quota = api THEN quota_value
                    WHEN api = 'Produce' THEN CAST(bytes_in AS double)
                    ELSE CAST(bytes_out - CASE WHEN api_version >= 12 THEN 1 ELSE 0 END AS double) END AS value,
               CASE WHEN throttle_quota = api THEN quota_bound END AS bound, CASE WHEN throttle_quota = api THEN quota_entity END AS entity,
               principal, coalesce(handled_ns, received_ns) AS begun_ns
        FROM {{requests}} LEFT JOIN kept USING (run, seq)
        WHERE api IN ('Produce', 'Fetch') AND coalesce(replica_id, -1) < 0 AND (NOT ({GIVEN_UP}) OR charged_ms IS NOT NULL)
    ), clients AS (
        SELECT run, broker, api, client_id, max(bound) AS real_bound, sum(value) AS bytes, min(begun_ns) AS from_ns, max(begun_ns) AS until_ns,
               count(DISTINCT bound, entity) = 1 AND count(DISTINCT principal) <= 1 AS always_same, max(entity) AS entity, max(principal) AS principal
        FROM counted GROUP BY run, broker, api, client_id
    ), users AS (
        SELECT run, broker, api, principal, count(DISTINCT client_id) AS client_ids FROM counted GROUP BY run, broker, api, principal
    ), changes AS (
        SELECT run, broker, at_ns, kind, get_json_object(facts, '$.entity') AS of_entity,
               CASE get_json_object(facts, '$.quota') WHEN 'producer_byte_rate' THEN 'Produce' WHEN 'consumer_byte_rate' THEN 'Fetch' END AS of_api
        FROM {{events}} WHERE kind IN ('quota', 'broker', 'recovery', 'dropped')
    ), changed AS (
        SELECT DISTINCT c.run, c.broker, c.api, c.client_id, true AS changed FROM clients c JOIN changes e ON e.run = c.run AND (
            e.kind = 'dropped'
            OR e.at_ns BETWEEN c.from_ns AND c.until_ns AND e.kind IN ('broker', 'recovery') AND e.broker = c.broker
            OR e.at_ns BETWEEN c.from_ns AND c.until_ns AND e.kind = 'quota' AND e.of_api = c.api
               AND (e.of_entity NOT LIKE '%client-id %' OR e.of_entity LIKE '%client-id <default>' OR contains(e.of_entity, c.client_id)))
    ), known AS (
        SELECT c.run, c.broker, c.api, c.client_id, real_bound, bytes,
               CASE WHEN always_same AND changed IS NULL AND (c.entity LIKE '%client-id %' OR u.client_ids = 1) THEN real_bound END AS known_bound
        FROM clients c LEFT JOIN changed USING (run, broker, api, client_id)
        LEFT JOIN users u ON u.run = c.run AND u.broker = c.broker AND u.api = c.api AND u.principal <=> c.principal
    )
    SELECT /*+ BROADCAST(known) */ * FROM counted JOIN known USING (run, broker, api, client_id)
"""
"""SQL: a query with a row for each request that was charged to a client's byte quota.

- value: the number of bytes that were charged. For a fetch, this is 4 plus the size of the response body: the size of the frame, without the byte of
  tagged fields that the header has in flexible versions. A recorder outside the broker (a capture or a proxy) sees only what was sent. If the
  response to a throttled fetch was sent without records, its value is therefore the size of this empty response.
- clock_ms: when the bytes were charged. For a capture or the trace of a proxy, this is the time of the response.
- known_bound: the quota that was in force, or null if it is unknown. It is known only if the quota belonged to this client alone, if it was neither
  set nor changed during the run, if the broker did not stop, and if the recorder did not drop requests or events.

A request whose client closed the connection before the response was ready was not charged. Brokers before 2.0 charge a throttled request when its
response is ready, but send the response only after the throttle time. If the client closed the connection during that time, the request was charged;
its clock_ms is the time of its event `throttle` in the trace.
"""

Windows = dict[tuple[str, int], tuple[int, int, bool]]
DEFAULT_WINDOWS = DEFAULT_SAMPLES, DEFAULT_WINDOW_MS, False
"""The quota windows assumed for a broker with unknown settings: (samples, window in ms, whether the broker delays throttled responses)."""
FIRST_MUTING_RELEASE = (2,)
"""The first release that sends a throttled response at once and mutes the connection (KIP-219)."""

SCHEMA = pa.schema(
    [
        ("client_id", pa.string()),
        ("api", pa.string()),
        ("broker", pa.int32()),
        ("quota", pa.float64()),
        ("in_force", pa.bool_()),
        ("requests", pa.int64()),
        ("throttles", pa.int64()),
        ("throttled_ms", pa.int64()),
        ("longest_ms", pa.int64()),
        ("a_minute_or_longer", pa.int64()),
        ("percent_of_time", pa.float64()),
        ("differs_from_the_broker", pa.int64()),
    ]
)
DDL = (
    "client_id string, api string, broker int, quota double, in_force boolean, requests bigint, throttles bigint, throttled_ms bigint, "
    "longest_ms bigint, a_minute_or_longer bigint, percent_of_time double, differs_from_the_broker bigint"
)


class _Plan:
    """The replay of one client's requests under one what-if quota, which counts requests and throttles and sums up the throttle times.

    Each repetition of a throttled fetch counts as a further request.
    """

    def __init__(self, quota: float, in_force: bool, samples: int, window_ms: int, fetches: bool) -> None:
        self.quota, self.in_force = quota, in_force
        self.replay = Replay(quota, samples, window_ms, fetches)
        self.requests = self.throttles = self.throttled_ms = self.longest_ms = self.long = self.differences = 0
        self.times: dict[int, tuple[int, int]] = {}
        """Maps each connection to the times between which it was in use, in ms on the clock of the replay.

        The two times are the time of the connection's first request, and the end of the throttle time of its last request.
        """
        self._decided: dict[int, int] = {}

    def add(self, requests: Iterable[Request], decided: dict[int, int], *, last: bool = False) -> None:
        """Replay further requests of the client, and sum up their throttle times.

        requests: the next requests in the order of the trace. decided: maps the sequence number of a request to the throttle time in ms that the
        broker applied for the recorded quota; the method counts the requests for which the replay gives another time. last: True in the last call,
        which replays the requests that are still pending and ignores `requests`.
        """
        self._decided |= decided
        for wait in self.replay.rest() if last else self.replay.of(requests):
            self.requests += 1
            self.throttles += wait.throttle_ms > 0
            self.throttled_ms += wait.throttle_ms
            self.longest_ms = max(self.longest_ms, wait.throttle_ms)
            self.long += wait.throttle_ms >= 60_000
            start_ms, _ = self.times.get(wait.conn, (wait.at_ms, 0))
            self.times[wait.conn] = start_ms, wait.at_ms + wait.throttle_ms
            self.differences += self._decided.pop(wait.seq, wait.throttle_ms) != wait.throttle_ms

    def row(self, client: tuple[Any, ...]) -> dict[str, Any]:
        _, broker, api, client_id = client
        open_ms = sum(end_ms - start_ms for start_ms, end_ms in self.times.values())
        return {
            "client_id": client_id,
            "api": api,
            "broker": broker,
            "quota": self.quota,
            "in_force": self.in_force,
            "requests": self.requests,
            "throttles": self.throttles,
            "throttled_ms": self.throttled_ms,
            "longest_ms": self.longest_ms,
            "a_minute_or_longer": self.long,
            "percent_of_time": round(100 * self.throttled_ms / open_ms, 1) if open_ms else 0.0,
            "differs_from_the_broker": self.differences if self.in_force else None,
        }


def _planned(windows: Windows, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = ((batch, row) for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
    for client, group in groupby((row for _, row in rows), key=lambda row: row[:4]):
        planned: list[_Plan] = []
        for _, _, api, _, at_ms, conn, seq, waited_ms, empty, by_this, value, known_bound in group:
            if not planned:
                quotas = sorted({*QUOTAS, *((known_bound * times for times in QUOTA_FACTORS) if known_bound else ())})
                samples, window_ms, holds = windows.get(client[:2], DEFAULT_WINDOWS)
                planned = [_Plan(q, q == known_bound, samples, window_ms, api == "Fetch" and not holds) for q in quotas]
            request = Request(seq, conn, at_ms, value, waited_ms, bool(empty))
            decided = {seq: waited_ms} if by_this or not waited_ms else {}
            for plan in planned:
                plan.add((request,), decided if plan.in_force else {})
        for plan in planned:
            plan.add((), {}, last=True)
        yield pa.RecordBatch.from_pylist([plan.row(client) for plan in planned], SCHEMA)


def windows_of(tables: Tables) -> Windows:
    """Return the quota windows of each (run, broker): (samples, window in ms, whether throttled responses are delayed, as before 2.0).

    Brokers whose recorder did not report their settings are not in the result.
    """
    windows = {}
    for row in tables.sql("""
        SELECT s.run, s.broker, window_num, window_s, get_json_object(facts, '$.release') AS release
        FROM {settings} s JOIN {events} e ON e.run = s.run AND e.kind = 'meta'
        WHERE window_num IS NOT NULL AND window_s IS NOT NULL
    """).collect():
        holds = row.release is not None and releases.number(row.release) < FIRST_MUTING_RELEASE
        windows[row.run, row.broker] = row.window_num, 1000 * row.window_s, holds
    return windows


def planned(tables: Tables) -> DataFrame:
    """Return the throttle times that clients would have had under other quotas: one row per client, API (Produce or Fetch), broker and quota.

    The times are computed by replaying the recorded requests of each client under each planned quota (`Replay`). A client that the byte quota never
    throttled in the trace is left out if it was charged for at most 1 MB.

    Columns:

    - client_id, api, broker: whose requests were replayed.
    - quota: the quota in bytes per second. in_force: whether the broker had this quota.
    - requests: number of requests, with the repetitions of throttled fetches.
    - throttles: number of throttles. a_minute_or_longer: number of throttles of at least a minute.
    - throttled_ms: sum of the throttle times. longest_ms: the longest throttle time.
    - percent_of_time: `throttled_ms` as a percentage of the time for which the client's connections were in use.
    - differs_from_the_broker: only for the quota in force: number of requests whose throttle time in the replay differs from that in the trace.
    """
    windows = windows_of(tables)
    charged = tables.sql(CHARGED).where("real_bound IS NOT NULL OR bytes > 1000000")
    keys = ["run", "broker", "api", "client_id"]
    columns = [
        *keys,
        "clock_ms",
        "conn",
        "seq",
        "waited_ms",
        "empty",
        "by_this_quota",
        "value",
        "known_bound",
    ]
    sorted_rows = charged.select(columns).repartition(*keys).sortWithinPartitions(*keys, "clock_ms", "seq")
    return sorted_rows.mapInArrow(lambda batches: _planned(windows, batches), DDL).orderBy(
        "client_id", "api", "broker", "quota"
    )


ANSWER = Answer(
    "what-if",
    "How long would each client be throttled under another quota?",
    (
        Query(
            "planned",
            "throttle times of each client, computed for the same requests under other quotas; in_force: whether the broker had this quota; "
            "differs_from_the_broker: for the quota in force, the number of requests whose computed throttle time is not the one in the trace",
            planned,
        ),
    ),
)
