"""Rules of the conversation itself: order, versions, which requests are answered, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ERROR, HELD, LASTS_NS, READ_COMMITTED, WARNING, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NS_PER_MS = 1_000_000
SLACK_MS = 1000
"""What a busy machine may add to a fetch's wait."""
EARLY_MS = 5
"""What two clocks, and timers that count whole milliseconds, may take from it."""
DEFAULT_WINDOW_NUM = 11
UNSUPPORTED_VERSION = 35
ANY_STEP = "-1L"
"""Stands for all steps of the sessions of a connection."""
OTHERS_ANSWER = "trouble LIKE 'the answer_s correlation id is %'"


def in_order(tables: Tables) -> DataFrame:
    return tables.sql(f"""
        WITH ordered AS (
            SELECT *, lag(seq) OVER c AS before_seq, lag(ready_ns) OVER c AS before_ns
            FROM {{requests}} WHERE answered AND conn IS NOT NULL
            WINDOW c AS (PARTITION BY run, conn ORDER BY seq)
        )
        SELECT run, seq, conn, api, correlation_id, before_seq, ready_ns, trouble,
               coalesce({OTHERS_ANSWER}, false) OR coalesce(ready_ns < before_ns, false) AS broken,
               CAST(greatest(coalesce(before_ns - ready_ns, 0), 0) AS double) AS excess
        FROM ordered
    """)


def versions(tables: Tables) -> DataFrame:
    """An ApiVersions that is newer than the broker is how a client learns what the broker has: it is told so, in version 0 (KIP-511)."""
    return tables.sql(f"""
        WITH offered AS (
            SELECT run, explode(from_json(get_json_object(facts, '$.advertised'), 'map<string, array<int>>')) AS (api_key, versions)
            FROM {{events}} WHERE kind = 'meta'
        ), told AS (SELECT DISTINCT run FROM offered)
        SELECT r.run, r.seq, r.api, r.api_version, r.client_id, o.versions[0] AS lowest, o.versions[1] AS highest, r.trouble,
               coalesce(NOT r.api_version BETWEEN o.versions[0] AND o.versions[1], true)
                   AND NOT coalesce(api = 'ApiVersions' AND error = {UNSUPPORTED_VERSION}, false)
                   OR (trouble IS NOT NULL AND NOT coalesce(partial, false) AND NOT {OTHERS_ANSWER}) AS broken,
               CAST(coalesce(greatest(o.versions[0] - r.api_version, r.api_version - o.versions[1], 0), 0) AS double) AS excess
        FROM {{requests}} r JOIN told USING (run)
        LEFT JOIN offered o ON o.run = r.run AND CAST(o.api_key AS int) = r.api_key
        WHERE r.api_key IS NOT NULL
    """)


def acknowledged(tables: Tables) -> DataFrame:
    return tables.sql("""
        SELECT run, seq, client_id, acks, answered, (acks = 0) = answered AS broken, CAST(1 AS double) AS excess
        FROM {requests} WHERE api = 'Produce' AND acks IS NOT NULL AND NOT (acks <> 0 AND trouble IS NOT NULL)
    """)


def in_time(tables: Tables) -> DataFrame:
    """By the monotonic clock, from when its handling began to when its answer was made. Where only a broker could tell that beginning: not
    before the answers that came before it on its connection, and what those throttle: a broker reads nothing of a muted connection
    (KIP-219), whether its client waits or not."""
    rows = tables.sql(f"""
        WITH unheard AS (
            SELECT *, IF(conn IS NULL, NULL, max(ready_ns + greatest(coalesce(throttle_ms, 0), 0) * {NS_PER_MS}L) OVER (
                PARTITION BY run, conn ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS free_ns
            FROM {{requests}} WHERE handled_ns IS NULL
        ), begun AS (
            SELECT *, handled_ns AS from_ns, CAST(NULL AS bigint) AS unless_muted_ns FROM {{requests}} WHERE handled_ns IS NOT NULL
            UNION ALL
            SELECT * EXCEPT (free_ns), greatest(received_ns, free_ns), received_ns - {LASTS_NS} FROM unheard
        )
        SELECT run, seq, client_id, max_wait_ms, waited_ms, waited_ms > greatest(max_wait_ms, 0) + {SLACK_MS}L AS broken,
               CAST(waited_ms - max_wait_ms AS double) AS excess, unless_muted_ns, ready_ns
        FROM (SELECT *, CAST((ready_ns - from_ns) / {NS_PER_MS}.0 AS double) AS waited_ms FROM begun
              WHERE api = 'Fetch' AND answered AND NOT {HELD} AND max_wait_ms IS NOT NULL)
    """)
    return tables.whole(rows, "unless_muted_ns", "ready_ns").drop("unless_muted_ns", "ready_ns")


def not_early(tables: Tables) -> DataFrame:
    """By the broker's clock where that is known, as it may jump. An answer with fewer bytes than wanted is asked about where nothing else
    explains it: all partitions are in it, none has more to give, and no quota for consumers may lower what is wanted: none was set, as a recorder
    knows that is told of the broker's settings. Who asks above what may be seen is answered at once: its answer tells where that ends, and of
    a session any answer of its connection, as a step leaves out what has not changed."""
    rows = tables.sql(f"""
        WITH asked AS (
            SELECT /*+ BROADCAST(s), BROADCAST(q) */ r.*, quotas, window_num IS NOT NULL AS told,
                   coalesce(clock_ms - handled_ms, CAST((ready_ns - coalesce(handled_ns, received_ns)) / {NS_PER_MS}.0 AS double)) AS waited_ms
            FROM {{requests}} r LEFT JOIN {{settings}} s ON s.run = r.run AND s.broker = r.broker
            LEFT JOIN (SELECT DISTINCT run, true AS quotas FROM {{events}}
                       WHERE kind = 'quota' AND get_json_object(facts, '$.quota') = 'consumer_byte_rate') q ON q.run = r.run
            WHERE api = 'Fetch' AND answered AND NOT {HELD} AND error = 0 AND coalesce(decided_ms, throttle_ms, 0) = 0 AND replica_id < 0
              AND api_version >= 3 AND min_bytes > 0 AND max_wait_ms > 0 AND max_bytes > 0 AND asked_partitions > 0 AND redirects = 0
              AND more IS NOT NULL AND coalesce(window_num, {DEFAULT_WINDOW_NUM}) > 1
        )
        SELECT run, seq, client_id, min_bytes, max_bytes, max_wait_ms, waited_ms, records_bytes,
               waited_ms < max_wait_ms - {EARLY_MS}L AS broken, CAST(max_wait_ms - waited_ms AS double) AS excess,
               IF(records_bytes > 0 OR session_epoch > 0, ready_ns, NULL) AS needs_all_until_ns, conn, IF(session_epoch > 0, {ANY_STEP}, seq) AS step
        FROM asked
        WHERE records_bytes = 0 OR (session_epoch <= 0 AND NOT more AND told AND quotas IS NULL AND records_bytes < least(min_bytes, max_bytes))
    """)
    above = tables.sql(f"""
        SELECT run, conn, explode(array(seq, {ANY_STEP})) AS step FROM {{partitions}}
        WHERE api = 'Fetch' AND error = 0 AND high_watermark >= 0
          AND asked_offset > IF(isolation = {READ_COMMITTED} AND last_stable_offset >= 0, last_stable_offset, high_watermark)
    """)
    # Only those few that look broken are joined.
    unexplained = rows.where("broken").join(above, ["run", "conn", "step"], "left_anti").select(*rows.columns)
    asked = rows.where("NOT broken").unionByName(unexplained)
    return tables.whole_before(asked, "needs_all_until_ns").drop("needs_all_until_ns", "conn", "step")


RULES = (
    Rule("6", "a connection's answers leave in the order of its requests, each to its own", ERROR, in_order),
    Rule("7", "versions are inside the advertised range, and answers are encoded in them", ERROR, versions),
    Rule("13", f"a fetch is answered at most {SLACK_MS} ms after max_wait_ms", WARNING, in_time),
    Rule("13 early", "a fetch is not answered before max_wait_ms with fewer than min_bytes, without a reason", ERROR, not_early),
    Rule("20", "acks=0 gets no answer, every other produce gets one", ERROR, acknowledged),
)  # fmt: skip
