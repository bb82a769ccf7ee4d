"""Rules of the conversation itself: order, versions, which requests are answered, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.trace.audit.rule import ERROR, WARNING, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SLACK_MS = 1000
"""What a busy machine may add to a fetch's wait."""
OTHERS_ANSWER = "trouble LIKE 'the answer_s correlation id is %'"


def in_order(tables: Tables) -> DataFrame:
    tables.requests.createOrReplaceTempView("audit_requests")
    return tables.requests.sparkSession.sql(f"""
        WITH ordered AS (
            SELECT *, lag(seq) OVER c AS before_seq, lag(ready_ns) OVER c AS before_ns
            FROM audit_requests WHERE answered AND conn IS NOT NULL
            WINDOW c AS (PARTITION BY run, conn ORDER BY seq)
        )
        SELECT run, seq, conn, api, correlation_id, before_seq, ready_ns, trouble,
               coalesce({OTHERS_ANSWER}, false) OR coalesce(ready_ns < before_ns, false) AS broken,
               CAST(greatest(coalesce(before_ns - ready_ns, 0), 0) AS double) AS excess
        FROM ordered
    """)


def versions(tables: Tables) -> DataFrame:
    tables.requests.createOrReplaceTempView("audit_requests")
    tables.events.createOrReplaceTempView("audit_events")
    return tables.requests.sparkSession.sql(f"""
        WITH offered AS (
            SELECT run, explode(from_json(get_json_object(facts, '$.advertised'), 'map<string, array<int>>')) AS (api_key, versions)
            FROM audit_events WHERE kind = 'meta'
        ), told AS (SELECT DISTINCT run FROM offered)
        SELECT r.run, r.seq, r.api, r.api_version, r.client_id, o.versions[0] AS lowest, o.versions[1] AS highest, r.trouble,
               coalesce(NOT r.api_version BETWEEN o.versions[0] AND o.versions[1], true)
                   OR (trouble IS NOT NULL AND NOT {OTHERS_ANSWER}) AS broken,
               CAST(coalesce(greatest(o.versions[0] - r.api_version, r.api_version - o.versions[1], 0), 0) AS double) AS excess
        FROM audit_requests r JOIN told USING (run)
        LEFT JOIN offered o ON o.run = r.run AND CAST(o.api_key AS int) = r.api_key
        WHERE r.api_key IS NOT NULL
    """)


def acknowledged(tables: Tables) -> DataFrame:
    return tables.requests.where("api = 'Produce' AND acks IS NOT NULL AND NOT (acks <> 0 AND trouble IS NOT NULL)").selectExpr(
        "run", "seq", "client_id", "acks", "answered", "(acks = 0) = answered AS broken", "CAST(1 AS double) AS excess"
    )  # fmt: skip


def in_time(tables: Tables) -> DataFrame:
    """By the monotonic clock, from when the request was there to when its answer was made. That none comes too early cannot be told
    where the broker's clock jumps, and is not asked."""
    waited = "(ready_ns - received_ns) / 1000000.0"
    return tables.requests.where("api = 'Fetch' AND answered AND NOT held AND max_wait_ms IS NOT NULL").selectExpr(
        "run",
        "seq",
        "client_id",
        "max_wait_ms",
        f"CAST({waited} AS double) AS waited_ms",
        f"{waited} > max_wait_ms + {SLACK_MS} AS broken",
        f"CAST({waited} - max_wait_ms AS double) AS excess",
    )


RULES = (
    Rule("6", "a connection's answers leave in the order of its requests, each to its own", ERROR, in_order),
    Rule("7", "versions are inside the advertised range, and answers are encoded in them", ERROR, versions),
    Rule("13", f"a fetch is answered at most {SLACK_MS} ms after max_wait_ms", WARNING, in_time),
    Rule("20", "acks=0 gets no answer, every other produce gets one", ERROR, acknowledged),
)
