"""Rules of throttling (KIP-13, KIP-124, KIP-219): how long, and what a throttled connection and a throttled fetch get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.trace.audit.rule import ERROR, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INT32_MAX = 2**31 - 1


def muted(tables: Tables) -> DataFrame:
    """By the broker's clock. That of a request that waited is when its answer was made, so one that was taken too early and then
    waited long enough is not found."""
    tables.requests.createOrReplaceTempView("audit_requests")
    spark = tables.requests.sparkSession
    return spark.sql("""
        WITH ordered AS (
            SELECT *, lag(clock_ms) OVER c AS before_ms, lag(decided_ms) OVER c AS muted_ms, lag(held) OVER c AS before_held,
                   lag(seq) OVER c AS throttled_seq
            FROM audit_requests WHERE conn IS NOT NULL AND clock_ms IS NOT NULL
            WINDOW c AS (PARTITION BY run, conn ORDER BY seq)
        )
        SELECT run, seq, conn, api, client_id, throttled_seq, clock_ms, before_ms + muted_ms AS muted_until_ms,
               clock_ms < before_ms + muted_ms AS broken,
               CAST(before_ms + muted_ms - clock_ms AS double) AS excess
        FROM ordered WHERE muted_ms > 0 AND NOT before_held
    """)


def how_long(tables: Tables) -> DataFrame:
    """The arithmetic of `broker.quota.windows`: doubles in the same order, halves rounded upwards. What was forced has no formula;
    that the answer tells what was decided is checked of all."""
    window = """
        (SELECT run, 1000 * coalesce(max(CAST(get_json_object(facts, '$.config["quota.window.size.seconds"]') AS bigint)), 1) AS cap_ms
         FROM audit_events WHERE kind = 'meta' GROUP BY run)"""
    tables.requests.createOrReplaceTempView("audit_requests")
    tables.events.createOrReplaceTempView("audit_events")
    spark = tables.requests.sparkSession
    return spark.sql(f"""
        WITH exact AS (
            SELECT r.*, cap_ms, CASE
                WHEN throttle_quota IN ('Produce', 'Fetch', 'Request')
                THEN (quota_rate - quota_bound) / quota_bound * quota_window_ms
                WHEN throttle_quota = 'ControllerMutation' THEN -quota_rate / quota_bound * 1000 END AS wait
            FROM audit_requests r LEFT JOIN {window} USING (run)
            WHERE decided_ms > 0 AND NOT held
        ), rounded AS (
            SELECT *, least(
                floor(wait) + CASE WHEN wait - floor(wait) >= 0.5 THEN 1 ELSE 0 END,
                CASE WHEN throttle_quota = 'Request' THEN coalesce(cap_ms, 1000) ELSE {INT32_MAX} END) AS expected_ms
            FROM exact
        )
        SELECT run, seq, api, client_id, throttle_quota, quota_entity, quota_rate, quota_bound, quota_window_ms, expected_ms, decided_ms,
               throttle_ms AS told_ms,
               coalesce(expected_ms <> decided_ms, false) OR coalesce(throttle_ms <> decided_ms, false) AS broken,
               CAST(greatest(coalesce(abs(expected_ms - decided_ms), 0), coalesce(abs(throttle_ms - decided_ms), 0)) AS double) AS excess
        FROM rounded
        WHERE expected_ms IS NOT NULL OR throttle_ms IS NOT NULL
    """)


def empty_fetch(tables: Tables) -> DataFrame:
    return tables.requests.where(
        "api = 'Fetch' AND answered AND coalesce(decided_ms, throttle_ms) > 0 AND NOT held"
    ).selectExpr(
        "run",
        "seq",
        "client_id",
        "coalesce(decided_ms, throttle_ms) AS throttled_ms",
        "records_bytes",
        "records_bytes > 0 AS broken",
        "CAST(records_bytes AS double) AS excess",
    )


RULES = (
    Rule("3", "no request of a connection is handled while it is muted", ERROR, muted),
    Rule("4", "a throttle lasts (rate - bound) / bound x window, rounded, and the answer says so", ERROR, how_long),
    Rule("5", "a throttled fetch carries no records", ERROR, empty_fetch),
)
