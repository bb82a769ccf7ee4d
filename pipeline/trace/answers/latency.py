"""Queries about latency: quantiles of each part of a request's time, and the slowest requests."""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import Answer, Query

PARTS = """
    WITH parts AS (
        SELECT api, (handled_ns - received_ns) / 1e6 AS queued, wait_ms AS waited,
               greatest((ready_ns - coalesce(handled_ns, received_ns)) / 1e6 - IF(held, applied_throttle_ms, 0) - coalesce(wait_ms, 0), 0) AS rest,
               CAST(coalesce(applied_throttle_ms, throttle_ms, 0) AS double) AS throttled, (sent_ns - ready_ns) / 1e6 AS sent,
               (coalesce(sent_ns, ready_ns) - received_ns) / 1e6 AS total
        FROM {requests} WHERE api IS NOT NULL AND has_response
    ), long AS (
        SELECT api, stack(7, 'queued', queued, 'handled', IF(waited IS NOT NULL, rest, NULL), 'waited', waited,
                          'handled or waiting', IF(waited IS NULL, rest, NULL), 'sent', sent, 'throttled', throttled, 'total', total) AS (part, ms)
        FROM parts
    )
    SELECT api, part, count(ms) AS requests, round(percentile_approx(ms, 0.5, 1000), 3) AS p50_ms,
           round(percentile_approx(ms, 0.95, 1000), 3) AS p95_ms,
           round(percentile_approx(ms, 0.99, 1000), 3) AS p99_ms, round(max(ms), 3) AS max_ms
    FROM long GROUP BY api, part HAVING count(ms) > 0
    ORDER BY api, array_position(array('queued', 'handled', 'waited', 'handled or waiting', 'sent', 'throttled', 'total'), part)
"""

SLOWEST = """
    SELECT run, seq, conn, client_id, api, api_version, round((ready_ns - received_ns) / 1e6, 3) AS took_ms, max_wait_ms, bytes_in, bytes_out, error
    FROM {requests} WHERE has_response ORDER BY ready_ns - received_ns - 1000000L * coalesce(max_wait_ms, 0) DESC, run, seq LIMIT 20
"""

LARGEST = """
    SELECT run, seq, conn, client_id, api, api_version, bytes_in, bytes_out, records_bytes
    FROM {requests} ORDER BY bytes_in + bytes_out DESC, run, seq LIMIT 20
"""

LANES = """
    WITH span AS (
        SELECT min(received_ns) AS begins, max(ready_ns) AS ends FROM {requests}
    ), busiest AS (
        SELECT CAST((received_ns - begins) / 5e9 AS bigint) AS window_ FROM {requests} CROSS JOIN span
        GROUP BY 1 ORDER BY sum(CASE WHEN coalesce(applied_throttle_ms, 0) > 0 THEN 1 ELSE 0 END) DESC, count(1) DESC, 1 LIMIT 1
    ), inside AS (
        SELECT r.*, begins + window_ * 5e9 AS from_ns, IF(held, 0, coalesce(applied_throttle_ms, 0)) AS muted_ms
        FROM {requests} r CROSS JOIN span CROSS JOIN busiest
        WHERE received_ns BETWEEN begins + window_ * 5e9 AND begins + (window_ + 1) * 5e9
    ), shown AS (
        SELECT run, conn FROM inside GROUP BY run, conn ORDER BY sum(muted_ms) DESC, count(1) DESC, conn LIMIT 12
    ), numbered AS (
        SELECT i.*, row_number() OVER (PARTITION BY run, conn ORDER BY muted_ms > 0 DESC, seq) AS nth FROM inside i JOIN shown USING (run, conn)
    )
    SELECT run, conn, seq, client_id, api, round((from_ns - begins) / 1e9, 3) AS window_begins_s,
           round((received_ns - from_ns) / 1e6, 3) AS received_ms,
           round((coalesce(handled_ns, received_ns) - from_ns) / 1e6, 3) AS handled_ms, round((ready_ns - from_ns) / 1e6, 3) AS ready_ms,
           round(wait_ms, 3) AS wait_ms, muted_ms, max_wait_ms
    FROM numbered CROSS JOIN span WHERE nth <= 80 ORDER BY run, conn, seq
"""

ANSWER = Answer(
    "latency",
    "Where did requests spend their time?",
    (
        Query(
            "parts",
            "parts of the time of requests, for each API. queued: from the arrival of the request until its handler starts; handled: in the "
            "handler; waited: parked in purgatory; sent: from the response until the kernel accepted it; throttled: the throttle time. If no "
            "broker of this project recorded the trace, 'handled or waiting' is the time from the arrival of the request until its response is ready",
            PARTS,
        ),
        Query(
            "lanes",
            "requests of twelve connections in the five seconds of the trace with the most throttles or, if there are none, with the most requests",
            LANES,
        ),
        Query("slowest", "the twenty requests that took longest, after their max_wait_ms is subtracted", SLOWEST),
        Query("largest", "the twenty requests with the most bytes in request and response together", LARGEST),
    ),
)
