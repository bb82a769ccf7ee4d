"""Rules of offsets: progress of fetches, order of batches, watermarks and epochs.

Two observations of a log are not compared if the log may have been truncated between them (`Tables.without_truncations`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ALL, ERROR, NAMED, WARNING, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

IN_RESPONSE = "PARTITION BY run, seq, topic, topic_id, partition ORDER BY position"


def overlaps(tables: Tables) -> DataFrame:
    """Check that batches do not overlap, within a response and among all acknowledged batches of a partition.

    Returns one row per pair of successive batches. A batch with acks=1 may exist only on its leader, so it is compared only with other acks=1 batches
    that this broker acknowledged. A batch that an idempotent producer sent several times is compared only once.

    Columns:

    - run (the recording), seq, api: the request with the later batch.
    - topic, partition, base_offset: the later batch. before_last_offset: the last offset of the earlier batch.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: number of overlapping offsets.
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

    Columns:

    - run (the recording), seq: the fetch.
    - topic, partition, base_offset: the batch. expected_offset: the fetch offset, or the offset after the batch before.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: number of missing offsets.
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

    Columns:

    - run (the recording), seq, broker: the fetch.
    - topic, partition, high_watermark, last_stable_offset, log_start: the partition in its response.
    - before_high_watermark, before_last_stable_offset, before_log_start: the earlier values.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: the largest fall of the three offsets.
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

    Columns:

    - run (the recording), seq, broker: the later change.
    - topic, partition, high_watermark, last_stable_offset, log_start: the partition after the later change.
    - before_high_watermark, before_last_stable_offset, before_log_start: the offsets after the earlier change.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: the largest fall of the three offsets.
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

    Columns:

    - run (the recording), seq, broker: the fetch or the change.
    - topic, partition, log_start, last_stable_offset, high_watermark: the partition. log_end: null if it is not compared.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: the largest distance between two of these offsets that are in the wrong order.
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

    Columns:

    - run (the recording), seq: the request with the later batch.
    - topic, partition, base_offset, epoch: the later batch. before_epoch: the epoch of the earlier one.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: `before_epoch` minus `epoch`.
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
)
