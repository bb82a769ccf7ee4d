"""Rules of fetch sizes (KIP-74, KIP-13): how many bytes a response may contain, in total and for each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ERROR, INT32_MAX, NAMED, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIRST_VERSION_WITH_LIMIT = 3


def whole_response(tables: Tables) -> DataFrame:
    """Check that the records of all partitions of a fetch response together are within the limits of the request, the broker and the quota.

    Returns one row per fetch response with records, with the limits and the size of the records. A first batch that is larger than the limits is
    allowed. A limit that is not known is not checked. The broker's `fetch.max.bytes` is known if the recorder reported settings. The bytes that a
    quota allows are known if an earlier throttle of the client was recorded with the limit of this quota, and no quota has changed since.

    Columns:

    - run (the recording), seq (of the fetch), broker, client_id: the fetch.
    - max_bytes, fetch_max_bytes, quota_bytes: the limits of the request, of the broker and of the quota.
    - first_batch_bytes: size of the first batch. limit_bytes: the limit that applies. records_bytes: size of all records.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: `records_bytes` minus `limit_bytes`.
    """
    rows = tables.sql(f"""
        WITH known AS (
            SELECT run, seq, broker, client_id, principal, api_version, records_bytes, first_batch_bytes, max_bytes, replica_id,
                   coalesce(handled_ns, received_ns) AS begun_ns, ready_ns,
                   last(CASE WHEN throttle_quota = 'Fetch' THEN struct(quota_bound, ready_ns AS at_ns) END, true) OVER c AS reported
            FROM {{requests}} WHERE api = 'Fetch' AND has_response AND problem IS NULL
            WINDOW c AS (PARTITION BY run, broker, client_id, principal ORDER BY ready_ns, seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        ), changes AS (
            SELECT /*+ BROADCAST */ run, collect_list(at_ns) AS changes FROM {{events}} WHERE kind = 'quota' GROUP BY run
        ), bounded AS (
            SELECT /*+ BROADCAST(s), BROADCAST(c) */ k.*, s.fetch_max_bytes,
                   CASE WHEN replica_id < 0
                             AND NOT exists(coalesce(changes, array()), at -> at BETWEEN least(reported.at_ns, begun_ns) AND k.ready_ns)
                        THEN CAST(least(reported.quota_bound * (s.window_num - 1) * s.window_s, {INT32_MAX}) AS bigint) END AS quota_bytes
            FROM known k LEFT JOIN {{settings}} s ON s.run = k.run AND s.broker = k.broker LEFT JOIN changes c ON c.run = k.run
        ), limited AS (
            SELECT *, greatest(least(max_bytes, coalesce(fetch_max_bytes, max_bytes), coalesce(quota_bytes, max_bytes)), first_batch_bytes)
                   AS limit_bytes
            FROM bounded
            WHERE records_bytes > 0 AND first_batch_bytes IS NOT NULL AND api_version >= {FIRST_VERSION_WITH_LIMIT}
        )
        SELECT run, seq, broker, client_id, max_bytes, fetch_max_bytes, quota_bytes, first_batch_bytes, limit_bytes, records_bytes,
               records_bytes > limit_bytes AS broken, CAST(records_bytes - limit_bytes AS double) AS excess, reported.at_ns AS throttled_ns, ready_ns
        FROM limited
    """)
    return tables.undecided_if_missing(rows, "throttled_ns", "ready_ns").drop("throttled_ns", "ready_ns")


def each_partition(tables: Tables) -> DataFrame:
    return tables.sql(f"""
        WITH filled AS (
            SELECT *, {NAMED}, row_number() OVER (PARTITION BY run, seq ORDER BY position) AS nth
            FROM {{partitions}} WHERE api = 'Fetch' AND bytes > 0
        )
        SELECT run, seq, where_ AS topic, partition, limit_bytes, bytes, first_batch_bytes,
               bytes > limit_bytes AND NOT (nth = 1 AND bytes = first_batch_bytes) AS broken,
               CAST(bytes - limit_bytes AS double) AS excess
        FROM filled WHERE limit_bytes IS NOT NULL AND batches > 0
    """)


RULES = (
    Rule("1", "the records of a fetch response stay within max_bytes, fetch.max.bytes and the quota, unless the first batch alone is larger", ERROR,
        whole_response),
    Rule("2", "partition_max_bytes limits the records of a partition, but not the first batch of a response", ERROR, each_partition),
)  # fmt: skip
