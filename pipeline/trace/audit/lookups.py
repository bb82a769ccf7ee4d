"""Rules of offset lookups: results of ListOffsets, and OFFSET_OUT_OF_RANGE in fetch responses.

Two observations of a log are not compared if the log may have been truncated between them (`Tables.without_truncations`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ERROR, EVER_NS, NAMED, NEVER_NS, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OFFSET_OUT_OF_RANGE = 1
LATEST = -1


def latest(tables: Tables) -> DataFrame:
    """Check that the latest offset from ListOffsets is between the high watermarks in earlier and later fetch responses of the same broker.

    Returns one row for each partition that a ListOffsets request looks up with the timestamp LATEST. For a request that reads committed records only,
    last stable offsets are used instead of high watermarks.

    Columns:

    - run (the recording), seq, broker, isolation: the ListOffsets request.
    - topic, partition, found_offset: the returned offset.
    - lowest, highest: the high watermarks in the earlier and the later fetch response; null if unknown.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: by how many offsets `found_offset` is below `lowest` or above `highest`.
    """
    rows = tables.sql(f"""
        WITH lookups AS (
            SELECT run, broker, {NAMED}, partition, begun_ns, ready_ns, NULL, NULL, seq, position, base_offset, isolation
            FROM {{partitions}} WHERE api = 'ListOffsets' AND error = 0 AND requested_timestamp = {LATEST} AND replica_id = -1 AND base_offset >= 0
        ), reported AS (
            SELECT run, broker, {NAMED}, partition, begun_ns, ready_ns, high_watermark, last_stable_offset, NULL AS seq, NULL AS position, NULL AS
            found_offset,
                   0 AS isolation
            FROM {{partitions}} WHERE api = 'Fetch' AND error = 0 AND high_watermark >= 0
        ), sightings AS (
            SELECT * FROM reported LEFT SEMI JOIN lookups USING (run, broker, where_, partition)
            UNION ALL SELECT * FROM lookups
        ), points AS (
            SELECT *, ready_ns AS at_ns, 1 AS side FROM sightings WHERE seq IS NULL
            UNION ALL SELECT *, begun_ns AS at_ns, 2 AS side FROM sightings WHERE seq IS NULL
            UNION ALL SELECT *, begun_ns AS at_ns, 1 AS side FROM sightings WHERE seq IS NOT NULL
            UNION ALL SELECT *, ready_ns AS at_ns, 2 AS side FROM sightings WHERE seq IS NOT NULL
        ), bounded AS (
            SELECT *,
                max(CASE WHEN side = 1 THEN struct(high_watermark AS end, at_ns) END) OVER before AS hw_before,
                max(CASE WHEN side = 1 AND last_stable_offset >= 0 THEN struct(last_stable_offset AS end, at_ns) END) OVER before AS lso_before,
                min(CASE WHEN side = 2 AND seq IS NULL THEN struct(high_watermark AS end, at_ns) END) OVER behind AS hw_behind,
                min(CASE WHEN side = 2 AND seq IS NULL AND last_stable_offset >= 0 THEN struct(last_stable_offset AS end, at_ns) END)
                    OVER behind AS lso_behind
            FROM points
            WINDOW before AS (PARTITION BY run, broker, where_, partition ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
                   behind AS (PARTITION BY run, broker, where_, partition ORDER BY at_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
        )
        SELECT run, broker, where_, partition, seq, isolation, found_offset, begun_ns,
               max(CASE WHEN side = 1 THEN IF(isolation = 1, lso_before, hw_before) END) AS low,
               max(CASE WHEN side = 2 THEN IF(isolation = 1, lso_behind, hw_behind) END) AS high
        FROM bounded WHERE seq IS NOT NULL GROUP BY run, broker, where_, partition, seq, position, isolation, found_offset, begun_ns
    """).selectExpr(
        "run", "seq", "broker", "where_", "partition", "isolation", "found_offset", "low.end AS lowest", "high.end AS highest",
        "coalesce(low.at_ns, begun_ns) AS before_ns", "coalesce(high.at_ns, begun_ns) AS then_ns",
    ).where("lowest IS NOT NULL OR highest IS NOT NULL")  # fmt: skip
    broken = rows.selectExpr(
        "*",
        "coalesce(found_offset < lowest, false) OR coalesce(found_offset > highest, false) AS broken",
        "CAST(greatest(lowest - found_offset, found_offset - highest, 0) AS double) AS excess",
    )
    return tables.without_truncations(broken, "before_ns", "then_ns")


def earliest_at(tables: Tables) -> DataFrame:
    """Check that ListOffsets for a timestamp returns the first record with that timestamp or a later one. Returns one row per returned record.

    A row is a fault if the returned record is older than the timestamp, or if a fetched batch before it has a record that is not older. Such a batch
    counts only if no response shows a log start offset above 0. In a compacted topic, or a topic with unknown cleanup policy, it counts only if it
    was fetched after the ListOffsets response: only then is it certain that the batch still existed when the ListOffsets was handled. Columns:

    - run (the recording), seq (of the ListOffsets), topic, partition, requested_timestamp: the lookup. found_offset, returned_timestamp: the record.
    - reached_before: largest timestamp of the batches before `found_offset` that count; null if none counts.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: `requested_timestamp` minus `returned_timestamp`, at least 1.
    """
    rows = tables.sql(f"""
        WITH lookups AS (
            SELECT run, {NAMED}, partition, base_offset AS at_offset, requested_timestamp, returned_timestamp, seq, 1 AS turn, NULL AS max_timestamp,
                   ready_ns AS at_ns
            FROM {{partitions}}
            WHERE api = 'ListOffsets' AND error = 0 AND requested_timestamp >= 0 AND base_offset >= 0 AND returned_timestamp >= 0
        ), moved AS (
            SELECT run, coalesce(topic, topic_id) AS where_, partition, max(log_start) > 0 AS moved FROM {{partitions}}
            WHERE api IN ('Fetch', 'Produce') GROUP BY run, coalesce(topic, topic_id), partition
        ), points AS (
            SELECT * FROM lookups
            UNION ALL
            SELECT * FROM (
                SELECT run, {NAMED}, partition, last_offset, NULL, NULL, seq, 0, max_timestamp, begun_ns FROM {{batches}}
                WHERE api = 'Fetch' AND NOT control AND count > 0
            ) fetched LEFT SEMI JOIN lookups USING (run, where_, partition)
        ), reached AS (
            SELECT *, max(CASE WHEN turn = 0 THEN struct(max_timestamp, at_ns) END) OVER (
                PARTITION BY run, where_, partition ORDER BY at_offset, turn DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
            FROM points
        ), known AS (
            SELECT /*+ BROADCAST(p) */ r.*,
                   IF(coalesce(moved, false) OR coalesce(compacts, true) AND reached.at_ns < r.at_ns, NULL, reached) AS before
            FROM reached r LEFT JOIN moved m ON m.run = r.run AND m.where_ = r.where_ AND m.partition = r.partition
            LEFT JOIN {{policies}} p ON p.run = r.run AND p.where_ = r.where_
            WHERE turn = 1
        )
        SELECT run, seq, where_, partition, requested_timestamp, at_offset AS found_offset, returned_timestamp,
            before.max_timestamp AS reached_before,
               returned_timestamp < requested_timestamp OR coalesce(before.max_timestamp >= requested_timestamp, false) AS broken,
               CAST(greatest(requested_timestamp - returned_timestamp, 1) AS double) AS excess,
               IF(returned_timestamp < requested_timestamp, at_ns, coalesce(before.at_ns, at_ns)) AS one_ns, at_ns AS other_ns
        FROM known
    """)
    return tables.without_truncations(tables.undecided_if_missing(rows, NEVER_NS, EVER_NS), "one_ns", "other_ns")


def out_of_range(tables: Tables) -> DataFrame:
    """Check that OFFSET_OUT_OF_RANGE is returned only for offsets outside the log. Returns one row per such error in a fetch response.

    An error is wrong if the requested offset lies between the first log start offset that the broker reported after the error, and the last high
    watermark that the broker reported before the error: such an offset was in the log at the time of the error.

    Columns:

    - run (the recording), seq, broker: the fetch. topic, partition, requested_offset: the partition in it.
    - log_start: the first value after the error. high_watermark: the last value before the error.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: 1, because a fault of this kind has no size.
    """
    rows = tables.sql(f"""
        WITH known AS (
            SELECT *, {NAMED},
                last(CASE WHEN error = 0 THEN high_watermark END, true) OVER before AS hw,
                last(CASE WHEN error = 0 THEN ready_ns END, true) OVER before AS before_ns,
                last(CASE WHEN error = 0 AND log_start >= 0 THEN log_start END, true) OVER behind AS later_start,
                last(CASE WHEN error = 0 AND log_start >= 0 THEN ready_ns END, true) OVER behind AS then_ns
            FROM {{partitions}} WHERE api = 'Fetch'
            WINDOW
                before AS (PARTITION BY run, broker, coalesce(topic, topic_id), partition ORDER BY ready_ns, seq
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
                behind AS (PARTITION BY run, broker, coalesce(topic, topic_id), partition ORDER BY ready_ns DESC, seq DESC
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        )
        SELECT run, seq, broker, where_, partition, requested_offset, later_start AS log_start, hw AS high_watermark, before_ns, then_ns,
               requested_offset BETWEEN later_start AND hw AS broken, CAST(1 AS double) AS excess
        FROM known
        WHERE error = {OFFSET_OUT_OF_RANGE} AND requested_offset IS NOT NULL AND hw IS NOT NULL AND later_start IS NOT NULL
    """)
    return tables.without_truncations(rows, "before_ns", "then_ns")


RULES = (
    Rule(
        "16",
        "the latest offset in a ListOffsets response is the high watermark or last stable offset at the time of the response",
        ERROR,
        latest,
    ),
    Rule("16-time", "ListOffsets for a timestamp returns the first record that is not older", ERROR, earliest_at),
    Rule("18", "OFFSET_OUT_OF_RANGE is returned only for offsets outside the log", ERROR, out_of_range),
)
