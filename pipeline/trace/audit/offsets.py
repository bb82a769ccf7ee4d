"""Rules of offsets: progress of fetches, order of batches, watermarks and epochs, and results of ListOffsets.

Two observations of a log are not compared if the log may have been truncated between them (`Tables.without_truncations`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ALL, ERROR, EVER_NS, NAMED, NEVER_NS, WARNING, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OFFSET_OUT_OF_RANGE = 1
LATEST = -1
IN_RESPONSE = "PARTITION BY run, seq, topic, topic_id, partition ORDER BY position"


def overlaps(tables: Tables) -> DataFrame:
    """Check that batches do not overlap, within a response and among all acknowledged batches of a partition.

    Returns one row per pair of successive batches. A batch with acks=1 may exist only on its leader, so it is compared only with other acks=1 batches
    that this broker acknowledged. A batch that an idempotent producer sent several times is compared only once.

    Columns: run (the recording), seq (of the request with the later batch), api, topic, partition, base_offset (of the later batch),
    before_last_offset (last offset of the earlier batch), broken (true: the row is a fault; null: undecided, because the trace lacks entries) and
    excess (number of overlapping offsets).
    """
    fetched = tables.sql(f"""
        SELECT run, seq, api, {NAMED}, partition, base_offset, lag(last_offset) OVER ({IN_RESPONSE}) AS before_, ready_ns, ready_ns AS before_ns
        FROM {{batches}} WHERE api = 'Fetch'
    """)
    produced = tables.sql(f"""
        WITH acknowledged AS (
            SELECT run, min(seq) AS seq, api, {NAMED}, partition, IF(acks = {ALL}, -1, broker) AS of_broker, base_offset, last_offset,
                   min(ready_ns) AS ready_ns
            FROM {{batches}} WHERE api = 'Produce' AND base_offset IS NOT NULL
            GROUP BY run, api, coalesce(topic, topic_id), partition, IF(acks = {ALL}, -1, broker), base_offset, last_offset, producer_id,
                     producer_epoch, base_sequence, crc,
                     CASE WHEN producer_id < 0 THEN seq END
        )
        SELECT run, seq, api, where_, partition, base_offset, lag(last_offset) OVER p AS before_, ready_ns, lag(ready_ns) OVER p AS before_ns
        FROM acknowledged WINDOW p AS (PARTITION BY run, where_, partition, of_broker ORDER BY base_offset, last_offset, seq)
    """)
    pairs = (
        fetched.unionByName(produced).where("before_ IS NOT NULL").withColumnRenamed("before_", "before_last_offset")
    )
    broken = pairs.selectExpr(
        "*",
        "base_offset <= before_last_offset AS broken",
        "CAST(before_last_offset - base_offset + 1 AS double) AS excess",
    )
    return tables.without_truncations(broken, "before_ns", "ready_ns")


def gaps(tables: Tables) -> DataFrame:
    """Check that fetch responses have no gap between batches. Returns one row per fetched batch.

    Batches of Produce requests are not compared: the trace may lack the batches of other producers. Topics that are known to be compacted are not
    checked.

    Columns: run (the recording), seq (of the fetch), topic, partition, expected_offset (the fetch offset, or the end offset of the batch before),
    base_offset, broken (true: the row is a fault; null: undecided, because the trace lacks entries) and excess (number of missing offsets).
    """
    rows = tables.sql(f"""
        SELECT *, base_offset > expected_offset AS broken, CAST(base_offset AS double) - expected_offset AS excess FROM (
            SELECT run, seq, coalesce(topic, topic_id) AS topic, partition, lag(last_offset) OVER ({IN_RESPONSE}) + 1 AS expected_offset,
                   base_offset, ready_ns
            FROM {{batches}} WHERE api = 'Fetch'
            UNION ALL
            SELECT run, seq, coalesce(topic, topic_id), partition, requested_offset, base_offset, ready_ns FROM {{partitions}}
            WHERE api = 'Fetch')
        WHERE expected_offset IS NOT NULL AND base_offset IS NOT NULL
    """).join(
        tables.sql("SELECT run, where_ AS topic FROM {policies} WHERE compacts").hint("broadcast"),
        ["run", "topic"],
        "left_anti",
    )
    return tables.undecided_if_missing_before(rows, "ready_ns").drop("ready_ns")


def watermarks(tables: Tables) -> DataFrame:
    """Check that the high watermark, last stable offset and log start offset of a partition never fall in a broker's fetch responses.

    Returns one row per partition of a response. The row compares each offset with the highest one in any earlier response. But if an offset is lower
    than in the previous response, the row compares only these two responses: the shorter the time between them, the less likely a truncation explains
    the fall. A missing offset is -1 and is not compared.

    Columns: run (the recording), seq (of the fetch), broker, topic, partition, high_watermark, last_stable_offset, log_start, before_high_watermark,
    before_last_stable_offset and before_log_start (the earlier values with which the three offsets are compared), broken (true: the row is a fault;
    null: undecided, because the trace lacks entries) and excess (by how many offsets the offset that fell most has fallen).
    """
    names = ("high_watermark", "last_stable_offset", "log_start")
    highest = ", ".join(f"max(struct({name} AS reported, ready_ns AS at_ns)) OVER p AS most_{name}" for name in names)
    unordered = "begun_ns < last.ready_ns"  # the fetches of one connection overlap: which values other connections got before is unknown

    def fall(of: str, name: str) -> str:
        return f"IF({name} >= 0, {of} - {name}, 0)"

    fell = f"{unordered} OR greatest({', '.join(fall(f'last.{name}', name) for name in names)}) > 0"
    before = ", ".join(f"IF({fell}, last.{name}, most_{name}.reported) AS before_{name}" for name in names)
    at = ", ".join(f"IF({fall(f'most_{name}.reported', name)} > 0, most_{name}.at_ns, NULL)" for name in names)
    falls = ", ".join(fall(f"before_{name}", name) for name in names)
    rows = tables.sql(f"""
        WITH reported AS (
            SELECT run, seq, broker, {NAMED}, partition, begun_ns, ready_ns, conn, {", ".join(names)}, {highest},
                   last(struct(conn, ready_ns, {", ".join(names)})) OVER p AS last
            FROM {{partitions}} WHERE api = 'Fetch' AND error = 0 AND high_watermark >= 0
            WINDOW p AS (PARTITION BY run, broker, coalesce(topic, topic_id), partition ORDER BY ready_ns, seq
                         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        ), fallen AS (
            SELECT run, seq, broker, where_, partition, {", ".join(names)}, {before},
                   IF({fell}, last.ready_ns, coalesce(greatest({at}), last.ready_ns)) AS before_ns, ready_ns
            FROM reported WHERE begun_ns >= last.ready_ns OR conn = last.conn
        )
        SELECT *, CAST(greatest({falls}, 0) AS double) AS excess, greatest({falls}, 0) > 0 AS broken FROM fallen
    """)
    return tables.without_truncations(rows, "before_ns", "ready_ns")


def moves(tables: Tables) -> DataFrame:
    """Check that no recorded high watermark, last stable offset or log start offset falls, unless the log was recreated or truncated.

    Returns one row per pair of successive recorded changes.

    Columns: run (the recording), seq (of the later change), broker, topic, partition, high_watermark, last_stable_offset and log_start (after the
    later change), before_high_watermark, before_last_stable_offset and before_log_start (after the earlier change), broken (true: the row is a fault;
    null: undecided, because the trace lacks entries) and excess (by how many offsets the offset that fell most has fallen).
    """
    names = ("high_watermark", "last_stable_offset", "log_start")
    before = ", ".join(f"lag({name}) OVER p AS before_{name}" for name in names)
    falls = ", ".join(f"before_{name} - {name}" for name in names)
    rows = tables.sql(f"""
        WITH paired AS (
            SELECT run, seq, broker, topic AS where_, partition, begins, {", ".join(names)}, {before}, lag(at_ns) OVER p AS before_ns, at_ns
            FROM {{state}} WINDOW p AS (PARTITION BY run, broker, topic, partition ORDER BY seq)
        ), fallen AS (
            SELECT * EXCEPT (begins), CAST(greatest({falls}, 0) AS double) AS excess FROM paired WHERE NOT begins AND before_ns IS NOT NULL
        )
        SELECT *, excess > 0 AS broken FROM fallen
    """)
    return tables.without_truncations(rows, "before_ns", "at_ns")


def ordered_offsets(tables: Tables) -> DataFrame:
    """Check the order of the offsets of a log, in responses and in recorded changes: log start, last stable offset, high watermark, log end.

    Returns one row per partition of a response and per recorded change of a replica. The log end of a leader is always compared. The log end of a
    follower is compared only with the broker setting `semantics=kafka`, with which the broker follows Kafka's code. With `semantics=kip`, it follows
    the KIPs, and a follower may record a high watermark above its own log end.

    Columns: run (the recording), seq (of the fetch or the change), broker, topic, partition, log_start, last_stable_offset, high_watermark, log_end
    (null if it is not compared), broken (true: the row is a fault; null: undecided, because the trace lacks entries) and excess (the largest distance
    between two of these offsets that are in the wrong order).
    """
    rows = tables.sql(f"""
        WITH kafka_semantics AS (
            SELECT run, max(get_json_object(facts, '$.semantics') = 'kafka') AS kafka_semantics FROM {{events}} WHERE kind = 'meta' GROUP BY run
        ), reported AS (
            SELECT run, seq, broker, {NAMED}, partition, log_start, last_stable_offset, high_watermark, NULL AS log_end, NULL AS needs_all_until_ns
            FROM {{partitions}} WHERE api = 'Fetch' AND error = 0 AND high_watermark >= 0
            UNION ALL
            SELECT /*+ BROADCAST(k), BROADCAST(o) */ s.run, s.seq, s.broker, s.topic, s.partition, log_start, last_stable_offset, high_watermark,
                   IF(coalesce(kafka_semantics, false) OR try_element_at(filter(states, x -> x.leader IS NOT NULL AND x.seq < s.seq), -1).leader =
                   s.broker,
                      log_end, NULL),
                   IF(coalesce(kafka_semantics, false), NULL, at_ns)
            FROM {{state}} s LEFT JOIN kafka_semantics k ON k.run = s.run
            LEFT JOIN {{states_of}} o ON o.run = s.run AND o.where_ = s.topic AND o.partition = s.partition
            WHERE high_watermark >= 0
        ), apart AS (
            SELECT *, greatest(IF(last_stable_offset >= 0, last_stable_offset - high_watermark, 0),
                               IF(last_stable_offset >= 0, try_subtract(log_start, last_stable_offset), 0),
                               try_subtract(log_start, high_watermark), 0) AS above, greatest(high_watermark - log_end, 0) AS behind
            FROM reported
        )
        SELECT run, seq, broker, where_ AS topic, partition, log_start, last_stable_offset, high_watermark, log_end, above + behind > 0 AS broken,
               CAST(greatest(above, behind) AS double) AS excess, IF(above > 0, NULL, needs_all_until_ns) AS needs_all_until_ns
        FROM apart
    """)
    return tables.undecided_if_missing_before(rows, "needs_all_until_ns").drop("needs_all_until_ns")


def epochs(tables: Tables) -> DataFrame:
    """Check that leader epochs do not fall from batch to batch in the log. Returns one row per compared pair of batches.

    - Within one response, successive batches of a partition are compared.
    - Across the responses of one broker to consumers, only the first and the last batch of the partition in each response are used. They are sorted
      by offset, and two successive batches are compared if they come from different responses.

    Columns: run (the recording), seq (of the request with the later batch), topic, partition, base_offset, before_epoch (of the earlier batch), epoch
    (of the later batch), broken (true: the row is a fault; null: undecided, because the trace lacks entries) and excess (`before_epoch` minus
    `epoch`).
    """
    of_batch = "run, where_, partition, base_offset, epoch"
    in_one = f"""
        SELECT {of_batch.replace("where_", NAMED)}, seq, position, NULL AS first_ns, NULL AS last_ns FROM {{batches}}
        WHERE api = 'Fetch' AND epoch >= 0"""
    ends = f"""
        SELECT {of_batch}, broker, life, min(seq) AS seq, min(begun_ns) AS first_ns, max(ready_ns) AS last_ns FROM (
            SELECT *, position = min(position) OVER a OR position = max(position) OVER a AS ends FROM {{consumed}} WHERE epoch >= 0
            WINDOW a AS (PARTITION BY run, seq, where_, partition))
        WHERE ends GROUP BY {of_batch}, broker, life"""

    def pairs(batches: str, of: str, ordered: str) -> DataFrame:
        return tables.sql(f"""
            SELECT *, epoch < before_epoch AS broken, CAST(before_epoch - epoch AS double) AS excess FROM (
                SELECT run, seq, where_, partition, base_offset, lag(epoch) OVER o AS before_epoch, epoch, lag(seq) OVER o AS before_seq,
                       least(first_ns, lag(first_ns) OVER o) AS before_ns, greatest(last_ns, lag(last_ns) OVER o) AS then_ns
                FROM ({batches}) WINDOW o AS (PARTITION BY {of} ORDER BY {ordered}))
            WHERE before_epoch IS NOT NULL
        """)

    apart = pairs(ends, "run, broker, where_, partition, life", "base_offset, seq").where("before_seq <> seq")
    return tables.without_truncations(
        pairs(in_one, "run, seq, where_, partition", "position").unionByName(apart), "before_ns", "then_ns"
    ).drop("before_seq")


def progress(tables: Tables) -> DataFrame:
    return tables.partitions.where(
        "api = 'Fetch' AND requested_offset IS NOT NULL AND next_offset IS NOT NULL"
    ).selectExpr(
        "run",
        "seq",
        "coalesce(topic, topic_id) AS topic",
        "partition",
        "requested_offset",
        "base_offset",
        "next_offset",
        "next_offset <= requested_offset AS broken",
        "CAST(requested_offset AS double) - next_offset + 1 AS excess",
    )


def latest(tables: Tables) -> DataFrame:
    """Check that the latest offset from ListOffsets is between the high watermarks in earlier and later fetch responses of the same broker.

    Returns one row for each partition that a ListOffsets request looks up with the timestamp LATEST. For a request that reads committed records only,
    last stable offsets are used instead of high watermarks.

    Columns: run (the recording), seq (of the ListOffsets), broker, topic, partition, isolation, found_offset (the returned offset), lowest and
    highest (the high watermarks in the earlier and the later fetch response; null if unknown), broken (true: `found_offset` is not between them;
    null: undecided, because the trace lacks entries) and excess (by how many offsets `found_offset` is below `lowest` or above `highest`).
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

    Columns: run (the recording), seq (of the fetch), broker, topic, partition, requested_offset, log_start (the first value after the error),
    high_watermark (the last value before the error), broken (true: the row is a fault; null: undecided, because the trace lacks entries) and excess
    (always 1).
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
    Rule("8", "batches of a partition do not overlap", ERROR, overlaps),
    Rule(
        "8-gap",
        "a fetch response has no gap after the requested offset, unless the topic is compacted (which the trace may not show)",
        WARNING,
        gaps,
    ),
    Rule("10", "high watermark, last stable and log start offset in fetch responses never fall", ERROR, watermarks),
    Rule(
        "10-moved",
        "no recorded change of a replica lowers its high watermark, last stable offset or log start offset",
        ERROR,
        moves,
    ),
    Rule(
        "10-order", "log start offset <= last stable offset <= high watermark <= log end offset", ERROR, ordered_offsets
    ),
    Rule("10-epoch", "the leader epoch never falls from one batch of a partition to the next", ERROR, epochs),
    Rule("12", "the records of a fetch response end at or after the requested offset", ERROR, progress),
    Rule(
        "16",
        "the latest offset in a ListOffsets response is the high watermark or last stable offset at the time of the response",
        ERROR,
        latest,
    ),
    Rule("16-time", "ListOffsets for a timestamp returns the first record that is not older", ERROR, earliest_at),
    Rule("18", "OFFSET_OUT_OF_RANGE is returned only for offsets outside the log", ERROR, out_of_range),
)
