"""Rules of acknowledged records: the log keeps each record unchanged, exactly once and in sequence (KIP-98, acks)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ALL, ERROR, NAMED, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SEQUENCE_MASK = 0x7FFFFFFF


def same_bytes(tables: Tables) -> DataFrame:
    """Check that acknowledged batches are fetched unchanged, by their CRC. Returns one row per fetch of an acknowledged batch.

    Batches that the broker may rewrite are not compared: brokers can set timestamps, convert, recompress and compact batches. A batch with acks=1 may
    exist only on its leader, so it is compared only with fetches from that broker.

    Columns:

    - run (the recording), seq (of the fetch), topic, partition, base_offset, last_offset, crc: the fetched batch.
    - produced_seq (of the Produce), produced_last_offset, produced_crc: the acknowledged batch, which has the same base offset.
    - broken: whether the CRCs differ, which is a fault; null (undecided) if entries that are missing in the trace may explain it.
    - excess: 1, because a fault of this kind has no size.
    """
    columns = f"run, seq, {NAMED}, broker, partition, base_offset, last_offset, count, codec, max_timestamp, crc, acks, begun_ns, ready_ns"
    rows = tables.sql(f"""
        SELECT f.run, f.seq, p.seq AS produced_seq, f.where_, f.partition, f.base_offset, p.last_offset AS produced_last_offset,
               f.last_offset, p.crc AS produced_crc, f.crc,
               least(p.begun_ns, f.begun_ns) AS before_ns, greatest(p.ready_ns, f.ready_ns) AS then_ns,
               f.last_offset <> p.last_offset OR f.crc <> p.crc AS broken, CAST(1 AS double) AS excess
        FROM (SELECT {columns} FROM {{batches}} WHERE api = 'Produce' AND base_offset IS NOT NULL) p
        JOIN (SELECT {columns} FROM {{batches}} WHERE api = 'Fetch') f
          ON f.run = p.run AND f.where_ = p.where_ AND f.partition = p.partition AND f.base_offset = p.base_offset
        WHERE f.crc IS NOT NULL
          AND f.count >= p.count AND f.codec = p.codec AND f.max_timestamp = p.max_timestamp AND (p.acks = {ALL} OR p.broker = f.broker)
    """)
    return tables.without_truncations(rows, "before_ns", "then_ns")


def not_skipped(tables: Tables) -> DataFrame:
    """Check that no fetch response skips an acknowledged batch. Returns one row per acknowledged batch.

    A response skips an acknowledged batch in two cases. First, the response contains batches before and after the acknowledged batch, but not the
    acknowledged batch. Second, the fetch offset is at or below the base offset of the acknowledged batch, but all batches in the response come after
    it. Only topics whose cleanup policy is known to be "delete" are checked.

    Columns:

    - run (the recording), seq (of the fetch that skips the batch, else of the Produce): the trace entry of the row.
    - produced_seq (of the Produce), topic, partition, base_offset, last_offset: the acknowledged batch.
    - from_offset, until_offset: the range of offsets that the response skips; null if it skips none.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: number of offsets of the batch.
    """
    rows = tables.sql(f"""
        WITH plain AS (SELECT run, where_ FROM {{policies}} WHERE NOT compacts
        ), neighbours AS (
            SELECT run, seq, broker, {NAMED}, partition, base_offset AS until_offset,
                   lag(last_offset) OVER (PARTITION BY run, seq, topic, topic_id, partition ORDER BY position) + 1 AS from_offset, ready_ns, begun_ns
            FROM {{batches}} WHERE api = 'Fetch'
            UNION ALL
            SELECT run, seq, broker, {NAMED}, partition, base_offset, requested_offset, ready_ns, begun_ns FROM {{partitions}}
            WHERE api = 'Fetch' AND requested_offset < base_offset
        ), skipped AS (SELECT * FROM neighbours WHERE from_offset < until_offset
        ), acknowledged AS (
            SELECT run, seq, broker, {NAMED}, partition, base_offset, last_offset, acks, ready_ns, crc FROM {{batches}}
            WHERE api = 'Produce' AND base_offset IS NOT NULL
        )
        SELECT /*+ BROADCAST(n) */ a.run, coalesce(s.seq, a.seq) AS seq, a.seq AS produced_seq, a.where_, a.partition, a.base_offset,
               a.last_offset, s.from_offset, s.until_offset, a.ready_ns AS before_ns, coalesce(s.ready_ns, a.ready_ns) AS then_ns,
               s.seq IS NOT NULL AS broken, CAST(a.last_offset - a.base_offset + 1 AS double) AS excess
        FROM acknowledged a JOIN plain n ON n.run = a.run AND n.where_ = a.where_
        LEFT JOIN skipped s ON s.run = a.run AND s.where_ = a.where_ AND s.partition = a.partition AND a.base_offset >= s.from_offset
            AND a.base_offset < s.until_offset AND a.ready_ns < s.begun_ns AND (a.acks = {ALL} OR a.broker = s.broker)
    """)
    # The run must contain every change of the topic's policy.
    return tables.without_truncations(tables.undecided_if_missing_before(rows, "then_ns"), "before_ns", "then_ns")


def in_sequence(tables: Tables) -> DataFrame:
    """Check that the sequence numbers of a producer's batches are consecutive. Returns one row per compared pair of batches.

    A pair is two successive batches of a producer, either in one fetch response or in different responses of a broker to consumers. Batches with
    missing offsets between them (compacted, or not fetched) are not compared. A sequence that starts at 0 is allowed: brokers expire producers that
    have been idle for long.

    Columns:

    - run (the recording), seq (of the request), topic, partition, producer_id, producer_epoch, base_offset, base_sequence: the later batch.
    - expected: the sequence number after the earlier batch.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: difference between `base_sequence` and `expected`.
    """
    of_batch = "run, where_, partition, producer_id, producer_epoch, base_offset, last_offset, base_sequence, control"
    columns = of_batch.replace("where_", NAMED)
    in_one = f"SELECT {columns}, seq, position, NULL AS first_ns, NULL AS last_ns FROM {{batches}} WHERE api = 'Fetch'"
    of_all = f"""
        SELECT {of_batch}, broker, life, min(seq) AS seq, min(begun_ns) AS first_ns, max(ready_ns) AS last_ns
        FROM {{consumed}} WHERE crc IS NOT NULL GROUP BY {of_batch}, broker, life"""

    def pairs(batches: str, of: str, ordered: str) -> DataFrame:
        return tables.sql(f"""
            WITH gapped AS (
                SELECT *, IF(base_offset > 1 + lag(last_offset) OVER (PARTITION BY {of} ORDER BY {ordered}), 1, 0) AS gap FROM ({batches})
            ), counted AS (
                SELECT *, sum(gap) OVER (PARTITION BY {of} ORDER BY {ordered}) AS stretch FROM gapped
            ), paired AS (
                SELECT run, seq, where_, partition, producer_id, producer_epoch, base_offset, base_sequence, lag(seq) OVER p AS before_seq,
                       (lag(base_sequence) OVER p + lag(last_offset - base_offset) OVER p + 1) & {SEQUENCE_MASK} AS expected,
                       least(first_ns, lag(first_ns) OVER p) AS before_ns, greatest(last_ns, lag(last_ns) OVER p) AS then_ns
                FROM counted WHERE producer_id >= 0 AND base_sequence >= 0 AND NOT control
                WINDOW p AS (PARTITION BY {of}, stretch, producer_id, producer_epoch ORDER BY {ordered})
            )
            SELECT *, base_sequence <> expected AS broken, CAST(abs(base_sequence - expected) AS double) AS excess
            FROM paired WHERE expected IS NOT NULL AND base_sequence > 0
        """)

    apart = pairs(of_all, "run, broker, where_, partition, life", "base_offset, last_offset, seq").where(
        "before_seq <> seq"
    )
    return tables.without_truncations(
        pairs(in_one, "run, seq, where_, partition", "position").unionByName(apart), "before_ns", "then_ns"
    ).drop("before_seq")


def once(tables: Tables) -> DataFrame:
    """Check that a batch which an idempotent producer sends again gets the same base offset as the first time, so that it is stored once.

    Returns one row per acknowledged Produce of a batch by an idempotent producer with acks=-1. The row compares the acknowledged base offset with
    that of the first Produce of the same batch (same sequence number and content). A first Produce is compared with itself.

    Columns:

    - run (the recording), seq (of the Produce), topic, partition, producer_id, producer_epoch, base_sequence: the batch of the row.
    - base_offset: the base offset in the response to this Produce.
    - first_seq, first_offset: `seq` of the first Produce of the batch, and the base offset in the response to it.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: difference between `base_offset` and `first_offset`.
    """
    rows = tables.sql(f"""
        WITH sent AS (
            SELECT *, {NAMED} FROM {{batches}} WHERE api = 'Produce' AND base_offset IS NOT NULL AND acks = {ALL}
              AND producer_id >= 0 AND base_sequence >= 0
        )
        SELECT *, base_offset <> first_offset AS broken, CAST(abs(base_offset - first_offset) AS double) AS excess FROM (
            SELECT run, seq, where_, partition, producer_id, producer_epoch, base_sequence, first(seq) OVER p AS first_seq,
                   first(base_offset) OVER p AS first_offset, base_offset, first(ready_ns) OVER p AS before_ns, ready_ns
            FROM sent
            WINDOW p AS (PARTITION BY run, where_, partition, producer_id, producer_epoch, base_sequence, count, crc ORDER BY ready_ns, seq))
    """)
    return tables.without_truncations(rows, "before_ns", "ready_ns")


def committed(tables: Tables) -> DataFrame:
    """Check that a high watermark in a fetch response covers every batch that the same broker acknowledged with acks=-1 before the fetch.

    Returns one row per partition of a fetch response, if the broker acknowledged a batch of the partition before the fetch. Of these batches, the row
    shows the batch with the highest end offset.

    Columns:

    - run (the recording), seq (of the fetch), broker, topic, partition, high_watermark: the partition in the fetch response.
    - produced_seq: `seq` of the Produce with the batch. acknowledged_end: the end offset of the batch.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: `acknowledged_end` minus `high_watermark`.
    """
    rows = tables.sql(f"""
        WITH points AS (
            SELECT run, seq, broker, {NAMED}, partition, ready_ns AS at_ns, next_offset AS acknowledged, NULL AS high_watermark, 0 AS turn
            FROM {{partitions}} WHERE api = 'Produce' AND acks = {ALL} AND error = 0 AND next_offset IS NOT NULL
            UNION ALL
            SELECT run, seq, broker, {NAMED}, partition, begun_ns, NULL, high_watermark, 1
            FROM {{partitions}} WHERE api = 'Fetch' AND error = 0 AND high_watermark >= 0
        ), known AS (
            SELECT *, max(CASE WHEN turn = 0 THEN struct(acknowledged, at_ns, seq) END) OVER (
                PARTITION BY run, broker, where_, partition ORDER BY at_ns, turn DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reported
            FROM points
        )
        SELECT run, seq, broker, where_, partition, reported.seq AS produced_seq, reported.acknowledged AS acknowledged_end, high_watermark,
               reported.at_ns AS before_ns, at_ns AS then_ns, high_watermark < reported.acknowledged AS broken,
               CAST(reported.acknowledged - high_watermark AS double) AS excess
        FROM known WHERE turn = 1 AND reported IS NOT NULL
    """)
    return tables.without_truncations(rows, "before_ns", "then_ns")


def covered(tables: Tables) -> DataFrame:
    """Check that a broker acknowledges a batch with acks=-1 only after the broker's recorded high watermark has reached the end of the batch.

    Returns one row per acknowledged partition of a Produce request. Only runs with recorded changes of high watermarks are checked.

    Columns:

    - run (the recording), seq (of the Produce), broker, topic, partition: the partition in the Produce request.
    - acknowledged_end: the end offset of the batch.
    - high_watermark: the highest value that was recorded before the acknowledgement, since the log was last created or truncated.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: `acknowledged_end` minus `high_watermark`.
    """
    rows = tables.sql(f"""
        WITH points AS (
            SELECT run, seq, broker, topic, partition, at_ns, begins, high_watermark, NULL AS acknowledged_end, 0 AS turn FROM {{state}}
            UNION ALL
            SELECT run, seq, broker, topic, partition, ready_ns, false, NULL, next_offset, 1 FROM {{partitions}}
            WHERE api = 'Produce' AND acks = {ALL} AND error = 0 AND next_offset IS NOT NULL AND topic IS NOT NULL
              AND run IN (SELECT run FROM {{state}})
        ), lives AS (
            SELECT *, count_if(begins) OVER (PARTITION BY run, broker, topic, partition ORDER BY at_ns, turn, seq) AS life
            FROM points
        ), known AS (
            SELECT *, coalesce(max(high_watermark) OVER (PARTITION BY run, broker, topic, partition, life ORDER BY at_ns, turn, seq), 0) AS reached
            FROM lives
        )
        SELECT run, seq, broker, topic, partition, acknowledged_end, reached AS high_watermark, reached < acknowledged_end AS broken,
               CAST(acknowledged_end - reached AS double) AS excess, at_ns
        FROM known WHERE turn = 1
    """)
    return tables.undecided_if_missing_before(rows, "at_ns").drop("at_ns")


RULES = (
    Rule("9", "an acknowledged batch is fetched as it was produced", ERROR, same_bytes),
    Rule("9-lost", "no fetch skips an acknowledged batch", ERROR, not_skipped),
    Rule("15", "the sequence numbers of an idempotent producer have no gap", ERROR, in_sequence),
    Rule("15-twice", "a batch that an idempotent producer sends again gets the same response", ERROR, once),
    Rule(
        "20-HW",
        "the broker responds to a produce request with acks=-1 only when the high watermark has passed its records",
        ERROR,
        committed,
    ),
    Rule(
        "20-moved",
        "the recorded high watermark has passed the records of a produce request with acks=-1 when its response is sent",
        ERROR,
        covered,
    ),
)
