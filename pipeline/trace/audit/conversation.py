"""Checks of the requests and responses of a connection: the order of responses, API versions, which requests get a response, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ERROR, HELD, LONGEST_EXCHANGE_NS, READ_COMMITTED, WARNING, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NS_PER_MS = 1_000_000
SLACK_MS = 1000
"""How many milliseconds later than `max_wait_ms` a fetch response may be ready, because the machine may be busy."""
EARLY_MS = 5
"""The time in ms by which a measured wait may be shorter than `max_wait_ms`.

Timers count whole milliseconds, and may use another clock than the one that measured the wait.
"""
DEFAULT_WINDOW_NUM = 11
UNSUPPORTED_VERSION = 35
ANY_SESSION_FETCH = "-1L"
"""SQL: the value of the column `step` for an incremental fetch. `not_early` joins fetches to partitions in responses by connection and `step`.

- A full fetch has its sequence number as `step`, so it is joined only to the partitions in its own response.
- An incremental fetch (KIP-227) has this value as `step`, so it is joined to the partitions in all responses of the connection. This is necessary
  because its own response may omit partitions.
- Each partition in a response has two rows for the join: one with the sequence number of its fetch as `step`, and one with this value.
"""
WRONG_CORRELATION_ID = "problem RLIKE '^the (correlation id of the response|answer.s correlation id) is '"
"""SQL: true for a response with the correlation id of another request.

The pattern also matches the text that earlier versions of this program wrote into their tables.
"""


def in_order(tables: Tables) -> DataFrame:
    return tables.sql(f"""
        WITH ordered AS (
            SELECT *, lag(seq) OVER c AS before_seq, lag(ready_ns) OVER c AS before_ns
            FROM {{requests}} WHERE has_response AND conn IS NOT NULL
            WINDOW c AS (PARTITION BY run, conn ORDER BY seq)
        )
        SELECT run, seq, conn, api, correlation_id, before_seq, ready_ns, problem,
               coalesce({WRONG_CORRELATION_ID}, false) OR coalesce(ready_ns < before_ns, false) AS broken,
               CAST(greatest(coalesce(before_ns - ready_ns, 0), 0) AS double) AS excess
        FROM ordered
    """)


def versions(tables: Tables) -> DataFrame:
    """Check that requests and responses use versions that the broker advertised. Returns one row per request.

    It is also a fault if a request or response cannot be decoded in its version. An ApiVersions request in an unsupported version is allowed if the
    broker responds with UNSUPPORTED_VERSION in version 0 (KIP-511), or if the trace lacks the response. The body of such a request need not be
    decodable, because kafkaproto may not know that version either.

    Columns:

    - run (the recording), seq (of the request), api, api_version, client_id: the request.
    - lowest, highest: the lowest and the highest advertised version of the API.
    - problem: why the request or the response cannot be decoded.
    - broken: true if the row is a fault.
    - excess: distance of `api_version` from the nearest advertised version.
    """
    return tables.sql(f"""
        WITH offered AS (
            SELECT run, explode(from_json(get_json_object(facts, '$.advertised'), 'map<string, array<int>>')) AS (api_key, versions)
            FROM {{events}} WHERE kind = 'meta'
        ), reported AS (SELECT DISTINCT run FROM offered)
        SELECT r.run, r.seq, r.api, r.api_version, r.client_id, o.versions[0] AS lowest, o.versions[1] AS highest, r.problem,
               IF(coalesce(r.api_version BETWEEN o.versions[0] AND o.versions[1], false),
                  problem IS NOT NULL AND NOT coalesce(partial, false) AND NOT {WRONG_CORRELATION_ID},
                  NOT coalesce(api = 'ApiVersions' AND (error = {UNSUPPORTED_VERSION} OR partial), false)) AS broken,
               CAST(coalesce(greatest(o.versions[0] - r.api_version, r.api_version - o.versions[1], 0), 0) AS double) AS excess
        FROM {{requests}} r JOIN reported USING (run)
        LEFT JOIN offered o ON o.run = r.run AND CAST(o.api_key AS int) = r.api_key
        WHERE r.api_key IS NOT NULL
    """)


def acknowledged(tables: Tables) -> DataFrame:
    return tables.sql("""
        SELECT run, seq, client_id, acks, has_response, (acks = 0) = has_response AS broken, CAST(1 AS double) AS excess
        FROM {requests} WHERE api = 'Produce' AND acks IS NOT NULL AND NOT (acks <> 0 AND problem IS NOT NULL)
    """)


def in_time(tables: Tables) -> DataFrame:
    """Check that a fetch response is ready at most one second (`SLACK_MS`) after the end of `max_wait_ms`. Returns one row per fetch.

    The wait is measured with the monotonic clock, from the start of the broker's handler. Only a broker can record that start. In other traces, the
    wait is assumed to begin after all earlier responses of the connection and their throttle times, because a broker reads nothing from a muted
    connection (KIP-219).

    Columns:

    - run (the recording), seq (of the fetch), client_id, max_wait_ms: the fetch.
    - waited_ms: the wait.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: `waited_ms` minus `max_wait_ms`.
    """
    rows = tables.sql(f"""
        WITH without_handler_times AS (
            SELECT *, IF(conn IS NULL, NULL, max(ready_ns + greatest(coalesce(throttle_ms, 0), 0) * {NS_PER_MS}L) OVER (
                PARTITION BY run, conn ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS free_ns
            FROM {{requests}} WHERE handled_ns IS NULL
        ), begun AS (
            SELECT *, handled_ns AS from_ns, CAST(NULL AS bigint) AS unless_muted_ns FROM {{requests}} WHERE handled_ns IS NOT NULL
            UNION ALL
            SELECT * EXCEPT (free_ns), greatest(received_ns, free_ns), received_ns - {LONGEST_EXCHANGE_NS} FROM without_handler_times
        )
        SELECT run, seq, client_id, max_wait_ms, waited_ms, waited_ms > greatest(max_wait_ms, 0) + {SLACK_MS}L AS broken,
               CAST(waited_ms - max_wait_ms AS double) AS excess, unless_muted_ns, ready_ns
        FROM (SELECT *, CAST((ready_ns - from_ns) / {NS_PER_MS}.0 AS double) AS waited_ms FROM begun
              WHERE api = 'Fetch' AND has_response AND NOT {HELD} AND max_wait_ms IS NOT NULL)
    """)
    return tables.undecided_if_missing(rows, "unless_muted_ns", "ready_ns").drop("unless_muted_ns", "ready_ns")


def not_early(tables: Tables) -> DataFrame:
    """Check that a fetch response with less than `min_bytes` is not sent before `max_wait_ms` has passed. Returns one row per checked fetch.

    Fetches of followers are not checked, nor are responses with an error, a throttle time, a preferred replica or a diverging epoch.

    - Any other response without records is checked.
    - A response with records is checked only if nothing else explains why it is early: the response contains all partitions, no partition has further
      records, and no consumer quota can lower the number of bytes. Quotas are known only if the recorder reports the broker's settings.
    - A fetch beyond the high watermark or last stable offset is no fault, because brokers respond to it at once. The response to the
      fetch shows whether its offset is beyond them. The response to an incremental fetch may omit partitions: such a fetch is therefore no fault
      if any response of the connection shows a fetch offset beyond the high watermark or last stable offset.

    The wait is measured with the broker's clock if the trace contains it. A wait that is too short by at most 5 ms (`EARLY_MS`) is no fault. Columns:

    - run (the recording), seq (of the fetch), client_id, min_bytes, max_bytes, max_wait_ms: the fetch.
    - waited_ms: the wait. records_bytes: size of the records in the response.
    - broken: true (a fault) if the wait was too short; null (undecided) if missing entries may explain this.
    - excess: `max_wait_ms` minus `waited_ms`.
    """
    rows = tables.sql(f"""
        WITH fetches AS (
            SELECT /*+ BROADCAST(s), BROADCAST(q) */ r.*, quotas, window_num IS NOT NULL AS reported,
                   coalesce(clock_ms - handled_ms, CAST((ready_ns - coalesce(handled_ns, received_ns)) / {NS_PER_MS}.0 AS double)) AS waited_ms
            FROM {{requests}} r LEFT JOIN {{settings}} s ON s.run = r.run AND s.broker = r.broker
            LEFT JOIN (SELECT DISTINCT run, true AS quotas FROM {{events}}
                       WHERE kind = 'quota' AND get_json_object(facts, '$.quota') = 'consumer_byte_rate') q ON q.run = r.run
            WHERE api = 'Fetch' AND has_response AND NOT {HELD} AND error = 0 AND coalesce(applied_throttle_ms, throttle_ms, 0) = 0 AND replica_id < 0
              AND api_version >= 3 AND min_bytes > 0 AND max_wait_ms > 0 AND max_bytes > 0 AND requested_partitions > 0 AND redirects = 0
              AND more IS NOT NULL AND coalesce(window_num, {DEFAULT_WINDOW_NUM}) > 1
        )
        SELECT run, seq, client_id, min_bytes, max_bytes, max_wait_ms, waited_ms, records_bytes,
               waited_ms < max_wait_ms - {EARLY_MS}L AS broken, CAST(max_wait_ms - waited_ms AS double) AS excess,
               IF(records_bytes > 0 OR session_epoch > 0, ready_ns, NULL) AS needs_all_until_ns, conn, IF(session_epoch > 0, {ANY_SESSION_FETCH}, seq)
               AS step
        FROM fetches
        WHERE records_bytes = 0 OR (session_epoch <= 0 AND NOT more AND reported AND quotas IS NULL AND records_bytes < least(min_bytes, max_bytes))
    """)
    beyond_end = tables.sql(f"""
        SELECT run, conn, explode(array(seq, {ANY_SESSION_FETCH})) AS step FROM {{partitions}}
        WHERE api = 'Fetch' AND error = 0 AND high_watermark >= 0
          AND requested_offset > IF(isolation = {READ_COMMITTED} AND last_stable_offset >= 0, last_stable_offset, high_watermark)
    """)
    # Only the few rows that look broken are joined.
    unexplained = rows.where("broken").join(beyond_end, ["run", "conn", "step"], "left_anti").select(*rows.columns)
    candidates = rows.where("NOT broken").unionByName(unexplained)
    return tables.undecided_if_missing_before(candidates, "needs_all_until_ns").drop(
        "needs_all_until_ns", "conn", "step"
    )


RULES = (
    Rule("6", "responses of a connection are sent in the order of its requests, each with the correlation id of its request", ERROR, in_order),
    Rule("7", "requests use advertised versions, and responses are encoded in the version of their request", ERROR, versions),
    Rule("13", f"the broker responds to a fetch at most {SLACK_MS} ms after max_wait_ms", WARNING, in_time),
    Rule(
        "13-early",
        "a fetch that finds less than min_bytes waits max_wait_ms, unless an error, a closer replica, a new leader or a new segment ends the wait",
        ERROR,
        not_early,
    ),
    Rule("20", "a produce request with acks=0 gets no response, every other produce request gets one", ERROR, acknowledged),
)  # fmt: skip
