"""Queries about throttled clients: which quotas throttle them, how often, for what share of the time, and the throttles of a minute or longer."""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import Answer, Query

LONG_THROTTLE_MS = 60_000
"""The minimum throttle time in ms of a long throttle, which is counted separately: many clients time out after it (`default.api.timeout.ms`)."""

CLIENTS = f"""
    WITH throttled AS (
        SELECT *, coalesce(applied_throttle_ms, throttle_ms, 0) AS ms FROM {{requests}}
    ), connections AS (
        SELECT run, conn, greatest((max(ready_ns) - min(received_ns)) / 1000000.0 + max_by(IF(held, 0, ms), seq), sum(ms)) AS open_ms
        FROM throttled GROUP BY run, conn
    ), clients AS (
        SELECT client_id, sum(open_ms) AS open_ms
        FROM (SELECT DISTINCT run, conn, client_id FROM {{requests}}) JOIN connections USING (run, conn) GROUP BY client_id
    )
    SELECT t.client_id, api, throttle_quota AS quota, quota_entity AS entity, max(quota_bound) AS bound_a_second,
           count(1) AS throttles, sum(ms) AS throttled_ms, round(100 * sum(ms) / nullif(max(open_ms), 0), 1) AS percent_of_time,
           max(ms) AS longest_ms, count_if(ms >= {LONG_THROTTLE_MS}) AS a_minute_or_longer
    FROM throttled t JOIN clients c ON c.client_id IS NOT DISTINCT FROM t.client_id
    WHERE ms > 0
    GROUP BY t.client_id, api, throttle_quota, quota_entity
    ORDER BY throttled_ms DESC, t.client_id
"""

RATES = """
    WITH spent AS (
        SELECT min(received_ns) AS begins, greatest(ceil((max(ready_ns) - min(received_ns)) / 1e9 / 240), 1) AS width_s FROM {requests}
    ), limited AS (
        SELECT client_id, max(quota_bound) AS bound, sum(applied_throttle_ms) AS throttled_ms FROM {requests}
        WHERE throttle_quota IN ('Produce', 'Fetch') GROUP BY client_id
    ), busiest AS (
        SELECT client_id FROM {requests} GROUP BY client_id ORDER BY sum(bytes_in + bytes_out) DESC LIMIT 6
    ), shown AS (
        SELECT client_id FROM (SELECT client_id FROM limited ORDER BY throttled_ms DESC LIMIT 6)
        UNION SELECT client_id FROM busiest WHERE NOT EXISTS (SELECT 1 FROM limited)
    )
    SELECT r.client_id, CAST((ready_ns - begins) / 1e9 / width_s AS bigint) * width_s AS at_s, max(width_s) AS width_s,
           sum(CASE WHEN api = 'Produce' THEN bytes_in WHEN api = 'Fetch' THEN bytes_out ELSE 0 END) / max(width_s) AS bytes_a_second,
           max(bound) AS bound, max(coalesce(applied_throttle_ms, throttle_ms, 0)) AS throttle_ms
    FROM {requests} r CROSS JOIN spent JOIN shown s ON s.client_id IS NOT DISTINCT FROM r.client_id
    LEFT JOIN limited l ON l.client_id = r.client_id
    GROUP BY r.client_id, CAST((ready_ns - begins) / 1e9 / width_s AS bigint) * width_s
    ORDER BY client_id, at_s
"""

ANSWER = Answer(
    "throttles",
    "Which clients were throttled, by which quota, and for how long?",
    (
        Query(
            "clients",
            "throttles of each client by API and quota; percent_of_time: throttled_ms as a percentage of the time for which the connections of "
            "the client were open",
            CLIENTS,
        ),
        Query(
            "rates",
            "bytes per second, quota (bound) and longest throttle time in each interval, for six clients: those that quotas throttled for the "
            "longest time, or, if there are no throttles, those with the most bytes",
            RATES,
        ),
    ),
)
