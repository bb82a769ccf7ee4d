"""Rules of throttling (KIP-13, KIP-124, KIP-219): the throttle time, muted connections and throttled fetches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ERROR, HELD, INT32_MAX, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROUNDING_BYTES = 1
"""The largest rounding error, in bytes, of the number of bytes in quota windows, which the broker sums up with doubles."""


def muted(tables: Tables) -> DataFrame:
    """Check that a broker handles no request of a connection while the connection is muted because of a throttle.

    Returns one row per request that comes after a throttled request on the same connection.

    Columns:

    - run (the recording), seq, conn, api, client_id: the later request.
    - throttled_seq: `seq` of the throttled request.
    - handled_ms: when the broker began to handle the later request. muted_until_ms: the end of the mute time. Both are on the broker's clock.
    - broken: true if the row is a fault.
    - excess: `muted_until_ms` minus `handled_ms`.
    """
    return tables.sql("""
        WITH ordered AS (
            SELECT *, max(struct(muted_until_ms, seq)) OVER c AS mute FROM {requests} WHERE conn IS NOT NULL AND handled_ms IS NOT NULL
            WINDOW c AS (PARTITION BY run, conn ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        )
        SELECT run, seq, conn, api, client_id, mute.seq AS throttled_seq, handled_ms, mute.muted_until_ms,
               handled_ms < mute.muted_until_ms AS broken, CAST(mute.muted_until_ms - handled_ms AS double) AS excess
        FROM ordered WHERE mute.muted_until_ms IS NOT NULL
    """)


def how_long(tables: Tables) -> DataFrame:
    """Check the throttle time of each throttled response. Returns one row per response, in which `broken` says whether the time is wrong.

    - The broker must apply the right time. For byte quotas and the request quota, this is (rate - quota) / quota x window: `window` is the time in ms
      over which the broker measured the client's rate. The time is computed with doubles as in `kafkaproto.broker.quota.windows`, with halves rounded
      up. The time is not checked if a test forced the throttle, or if the reason of the throttle was not recorded.
    - The response must contain the time that the broker applied.

    Columns:

    - run (the recording), seq, api, client_id: the request.
    - throttle_quota: which kind of quota was exceeded. quota_entity: to which user or client id it belongs.
    - quota_rate: the measured rate. quota_bound: the quota. quota_window_ms: `window`.
    - expected_ms: the right time; null if it is not checked.
    - applied_throttle_ms: the time that the broker applied. response_throttle_ms: the time in the response.
    - broken: true if the row is a fault.
    - excess: difference of `applied_throttle_ms` from `expected_ms` or from `response_throttle_ms`, whichever is larger.
    """
    return tables.sql(f"""
        WITH exact AS (
            SELECT /*+ BROADCAST(s) */ r.*, 1000 * s.window_s AS cap_ms, CASE
                WHEN throttle_quota IN ('Produce', 'Fetch', 'Request')
                THEN (quota_rate - quota_bound) / nullif(quota_bound, 0) * quota_window_ms
                WHEN throttle_quota = 'ControllerMutation' THEN -quota_rate / nullif(quota_bound, 0) * 1000 END AS wait
            FROM {{requests}} r LEFT JOIN {{settings}} s ON s.run = r.run AND s.broker = r.broker
            WHERE applied_throttle_ms > 0 AND NOT held
        ), rounded AS (
            SELECT *, CAST(throttle_ms AS bigint) AS response_throttle_ms, IF(wait IS NULL, NULL, least(
                floor(least(wait, {INT32_MAX})) + CASE WHEN wait - floor(wait) >= 0.5 THEN 1 ELSE 0 END,
                CASE WHEN throttle_quota = 'Request' THEN coalesce(cap_ms, 1000) ELSE {INT32_MAX} END)) AS expected_ms
            FROM exact
        )
        SELECT run, seq, api, client_id, throttle_quota, quota_entity, quota_rate, quota_bound, quota_window_ms, expected_ms, applied_throttle_ms,
               response_throttle_ms,
               coalesce(expected_ms <> applied_throttle_ms, false) OR coalesce(response_throttle_ms <> applied_throttle_ms, false) AS broken,
               CAST(greatest(coalesce(abs(expected_ms - applied_throttle_ms), 0),
                             coalesce(abs(response_throttle_ms - applied_throttle_ms), 0)) AS double) AS excess
        FROM rounded
        WHERE expected_ms IS NOT NULL OR response_throttle_ms IS NOT NULL
    """)


def empty_fetch(tables: Tables) -> DataFrame:
    return tables.sql(f"""
        SELECT run, seq, client_id, coalesce(applied_throttle_ms, throttle_ms) AS throttled_ms, records_bytes,
               records_bytes > 0 AS broken, CAST(records_bytes AS double) AS excess
        FROM {{requests}} WHERE api = 'Fetch' AND has_response AND coalesce(applied_throttle_ms, throttle_ms) > 0 AND NOT {HELD}
    """)


def taken_back(tables: Tables) -> DataFrame:
    """Check that a broker does not count the bytes of a throttled fetch against the quota. Returns one row per pair of successive throttled fetches.

    A broker charges the bytes of a fetch to the quota before it throttles the client. A throttled fetch returns no records, so the broker must then
    subtract these bytes. Both fetches of a pair are sent to one broker by one client, under one consumer quota. A quota that several client ids share
    (the quota of a user alone) is not checked.

    Columns:

    - run (the recording), seq (of the second fetch), before_seq (of the first fetch), client_id, quota_entity: the two fetches and their quota.
    - before: number of bytes in the quota windows at the first fetch, with the bytes of this fetch. before_value: bytes of the first fetch alone.
    - sent_between: number of bytes of the client's fetch responses that were sent between the two fetches and had no throttle time.
    - total: number of bytes in the quota windows at the second fetch, with the bytes of this fetch. quota_value: bytes of the second fetch alone.
    - excess: number of bytes by which `total` is larger than `before` - `before_value` + `sent_between` + `quota_value`. This sum is the largest
      total if the broker has subtracted the bytes of the first fetch. One byte more is allowed, because of rounding.
    - broken: true (a fault) if `total` is too large; null (undecided) if missing entries may explain this.
    """
    rows = tables.sql(f"""
        WITH counted AS (
            SELECT *, sum(CASE WHEN applied_throttle_ms = 0 THEN bytes_out ELSE 0 END) OVER (
                PARTITION BY run, broker, client_id ORDER BY ready_ns, seq) AS sent
            FROM {{requests}}
            WHERE api = 'Fetch' AND has_response AND NOT held AND replica_id < 0 AND applied_throttle_ms IS NOT NULL
        ), recorded AS (
            SELECT *, quota_rate * quota_window_ms / 1000 AS total, lag(quota_rate * quota_window_ms / 1000) OVER c AS before,
                   lag(quota_value) OVER c AS before_value, lag(sent) OVER c AS before_sent, lag(seq) OVER c AS before_seq
            FROM counted WHERE throttle_quota = 'Fetch' AND quota_entity LIKE '%client-id%'
            WINDOW c AS (PARTITION BY run, broker, client_id, principal, quota_entity ORDER BY ready_ns, seq)
        )
        SELECT run, seq, client_id, quota_entity, before_seq, before, before_value, quota_value, sent - before_sent AS sent_between, total,
               total > before - before_value + quota_value + sent - before_sent + {ROUNDING_BYTES} AS broken,
               CAST(total - (before - before_value + quota_value + sent - before_sent) AS double) AS excess,
               ready_ns
        FROM recorded WHERE before IS NOT NULL
    """)
    return tables.undecided_if_missing_before(rows, "ready_ns").drop("ready_ns")


RULES = (
    Rule("3", "no request of a connection is handled while the connection is muted", ERROR, muted),
    Rule(
        "4",
        "a throttle time is (rate - quota) / quota x window, rounded, and the response contains this time",
        ERROR,
        how_long,
    ),
    Rule("5", "a throttled fetch returns no records", ERROR, empty_fetch),
    Rule("5-bytes", "the bytes of a throttled fetch are not charged to the quota", ERROR, taken_back),
)
