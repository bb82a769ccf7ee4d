"""Rules of offsets: limits and progress of fetches, what batches and watermarks must not do.

Where something happened in between that may cut a log (a broker, a leader, a recovery, a deleted topic), two rows are not compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.trace.audit.rule import ERROR, WARNING, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OFFSET_OUT_OF_RANGE = 1
NAMED = "coalesce(topic, topic_id) AS where_"
CUTTING_EVENTS = "('broker', 'leader', 'recovery')"


def _uncut(tables: Tables, rows: DataFrame, one_ns: str, other_ns: str) -> DataFrame:
    """The rows between whose two times nothing may have cut a log."""
    events = tables.events.where(f"kind IN {CUTTING_EVENTS}").selectExpr("run", "at_ns")
    deleted = tables.requests.where("api = 'DeleteTopics'").selectExpr("run", "ready_ns AS at_ns")
    cuts = events.union(deleted).groupBy("run").agg({"at_ns": "collect_list"}).toDF("run", "cuts")
    between = f"exists(cuts, at -> at BETWEEN least({one_ns}, {other_ns}) AND greatest({one_ns}, {other_ns}))"
    return rows.join(cuts.hint("broadcast"), "run", "left").where(f"NOT coalesce({between}, false)").drop("cuts")


def limits(tables: Tables) -> DataFrame:
    tables.partitions.createOrReplaceTempView("audit_partitions")
    return tables.partitions.sparkSession.sql(f"""
        WITH filled AS (
            SELECT *, {NAMED}, row_number() OVER (PARTITION BY run, seq ORDER BY place) AS nth
            FROM audit_partitions WHERE api = 'Fetch' AND bytes > 0
        )
        SELECT run, seq, where_ AS topic, partition, limit_bytes, bytes, first_batch_bytes,
               bytes > limit_bytes AND NOT (nth = 1 AND bytes = first_batch_bytes) AS broken,
               CAST(bytes - limit_bytes AS double) AS excess
        FROM filled WHERE limit_bytes IS NOT NULL AND batches > 0
    """)


def _batch_pairs(tables: Tables) -> DataFrame:
    """Neighbours in one partition of one fetch answer, and of all acknowledged batches of a partition, as (`before_`, `base_offset`)."""
    tables.timed(tables.batches).createOrReplaceTempView("audit_batches")
    spark = tables.batches.sparkSession
    fetched = spark.sql(f"""
        SELECT run, seq, api, {NAMED}, partition, base_offset, lag(last_offset) OVER p AS before_, ready_ns, ready_ns AS before_ns
        FROM audit_batches WHERE api = 'Fetch'
        WINDOW p AS (PARTITION BY run, seq, topic, topic_id, partition ORDER BY place)
    """)
    produced = spark.sql(f"""
        WITH acknowledged AS (
            SELECT DISTINCT run, min(seq) OVER same AS seq, api, {NAMED}, partition, base_offset, last_offset,
                   min(ready_ns) OVER same AS ready_ns, producer_id, producer_epoch, base_sequence, crc,
                   CASE WHEN producer_id < 0 THEN seq END AS once
            FROM audit_batches WHERE api = 'Produce' AND base_offset IS NOT NULL
            WINDOW same AS (PARTITION BY run, coalesce(topic, topic_id), partition, base_offset, producer_id, producer_epoch, base_sequence,
                            crc, CASE WHEN producer_id < 0 THEN seq END)
        )
        SELECT run, seq, api, where_, partition, base_offset, lag(last_offset) OVER p AS before_, ready_ns,
               lag(ready_ns) OVER p AS before_ns
        FROM acknowledged
        WINDOW p AS (PARTITION BY run, where_, partition ORDER BY base_offset, last_offset, seq)
    """)
    return _uncut(tables, fetched.unionByName(produced).where("before_ IS NOT NULL"), "before_ns", "ready_ns")


def overlaps(tables: Tables) -> DataFrame:
    """A repeated batch of an idempotent producer is the same batch."""
    return _batch_pairs(tables).selectExpr(
        "run",
        "seq",
        "api",
        "where_ AS topic",
        "partition",
        "before_ AS before_last_offset",
        "base_offset",
        "base_offset <= before_ AS broken",
        "CAST(before_ - base_offset + 1 AS double) AS excess",
    )


def gaps(tables: Tables) -> DataFrame:
    """Of fetch answers only: what was produced may have neighbours that the trace has not."""
    between = _batch_pairs(tables).where("api = 'Fetch'").selectExpr(
        "run", "seq", "where_ AS topic", "partition", "before_ + 1 AS expected_offset", "base_offset"
    )  # fmt: skip
    first = tables.partitions.where("api = 'Fetch' AND asked_offset IS NOT NULL AND base_offset IS NOT NULL").selectExpr(
        "run", "seq", "coalesce(topic, topic_id) AS topic", "partition", "asked_offset AS expected_offset", "base_offset"
    )  # fmt: skip
    return between.union(first).selectExpr(
        "*", "base_offset > expected_offset AS broken", "CAST(base_offset - expected_offset AS double) AS excess"
    )


def same_bytes(tables: Tables) -> DataFrame:
    """By their checksums. A broker that sets times, compresses anew or compacts changes them, and is not asked."""
    tables.timed(tables.batches).createOrReplaceTempView("audit_batches")
    columns = f"run, seq, {NAMED}, partition, base_offset, last_offset, count, codec, max_timestamp, crc, ready_ns"
    rows = tables.batches.sparkSession.sql(f"""
        SELECT f.run, f.seq, p.seq AS produced_seq, f.where_ AS topic, f.partition, f.base_offset, p.last_offset AS produced_last_offset,
               f.last_offset, p.crc AS produced_crc, f.crc, p.ready_ns AS before_ns, f.ready_ns AS then_ns,
               f.last_offset <> p.last_offset OR f.crc <> p.crc AS broken, CAST(1 AS double) AS excess
        FROM (SELECT {columns} FROM audit_batches WHERE api = 'Produce' AND base_offset IS NOT NULL) p
        JOIN (SELECT {columns} FROM audit_batches WHERE api = 'Fetch') f
          ON f.run = p.run AND f.where_ = p.where_ AND f.partition = p.partition AND f.base_offset = p.base_offset
        WHERE f.count >= p.count AND f.codec = p.codec AND f.max_timestamp = p.max_timestamp
    """)
    return _uncut(tables, rows, "before_ns", "then_ns").drop("before_ns", "then_ns")


def _fetched(tables: Tables) -> DataFrame:
    return tables.timed(tables.partitions.where("api = 'Fetch'")).selectExpr("*", NAMED)


def watermarks(tables: Tables) -> DataFrame:
    """What a fetch is told that came after another was answered by the same broker; and log start <= LSO <= HW in each answer."""
    _fetched(tables).where("error = 0 AND high_watermark >= 0").createOrReplaceTempView("audit_fetched")
    names = ("high_watermark", "last_stable_offset", "log_start")
    before = ", ".join(f"lag({name}) OVER p AS before_{name}" for name in names)
    # Versions that lack a column, and logs that have none, tell -1.
    fall = ", ".join(f"CASE WHEN {name} >= 0 AND later AND NOT cut THEN before_{name} - {name} END" for name in names)
    rows = tables.partitions.sparkSession.sql(f"""
        SELECT *, lag(ready_ns) OVER p AS before_ns, lag(conn) OVER p AS before_conn, {before} FROM audit_fetched
        WINDOW p AS (PARTITION BY run, broker, where_, partition ORDER BY ready_ns, seq)
    """).selectExpr("*", "coalesce(received_ns >= before_ns OR conn = before_conn, false) AS later")
    uncut = _uncut(tables, rows.select("run", "seq", "place", "before_ns", "ready_ns"), "before_ns", "ready_ns")
    return (
        rows.join(uncut.selectExpr("run", "seq", "place", "false AS uncut"), ["run", "seq", "place"], "left")
        .selectExpr("*", "uncut IS NULL AS cut")
        .selectExpr(
            "run",
            "seq",
            "broker",
            "where_ AS topic",
            "partition",
            *(column for name in names for column in (f"before_{name}", name)),
            f"greatest({fall}, 0) AS fallen",
            "greatest(CASE WHEN last_stable_offset >= 0 THEN last_stable_offset - high_watermark END, log_start - high_watermark, 0) AS above",
        )
        .selectExpr("*", "fallen > 0 OR above > 0 AS broken", "CAST(greatest(fallen, above) AS double) AS excess")
        .drop("fallen", "above")
    )


def progress(tables: Tables) -> DataFrame:
    return tables.partitions.where("api = 'Fetch' AND asked_offset IS NOT NULL AND next_offset IS NOT NULL").selectExpr(
        "run",
        "seq",
        "coalesce(topic, topic_id) AS topic",
        "partition",
        "asked_offset",
        "base_offset",
        "next_offset",
        "next_offset <= asked_offset AS broken",
        "CAST(asked_offset - next_offset + 1 AS double) AS excess",
    )


def out_of_range(tables: Tables) -> DataFrame:
    """Against the last high watermark told before and the first log start told after: what lies between was readable all the time."""
    _fetched(tables).createOrReplaceTempView("audit_fetched")
    rows = tables.partitions.sparkSession.sql(f"""
        WITH known AS (
            SELECT *,
                last(CASE WHEN error = 0 THEN high_watermark END, true) OVER before AS hw,
                last(CASE WHEN error = 0 THEN ready_ns END, true) OVER before AS before_ns,
                first(CASE WHEN error = 0 AND log_start >= 0 THEN log_start END, true) OVER behind AS later_start,
                first(CASE WHEN error = 0 AND log_start >= 0 THEN ready_ns END, true) OVER behind AS then_ns
            FROM audit_fetched
            WINDOW
                before AS (PARTITION BY run, broker, where_, partition ORDER BY ready_ns, seq
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
                behind AS (PARTITION BY run, broker, where_, partition ORDER BY ready_ns, seq
                           ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
        )
        SELECT run, seq, broker, where_ AS topic, partition, asked_offset, later_start AS log_start, hw AS high_watermark, before_ns, then_ns,
               asked_offset BETWEEN later_start AND hw AS broken, CAST(1 AS double) AS excess
        FROM known
        WHERE error = {OFFSET_OUT_OF_RANGE} AND asked_offset IS NOT NULL AND hw IS NOT NULL AND later_start IS NOT NULL
    """)
    return _uncut(tables, rows, "before_ns", "then_ns").drop("before_ns", "then_ns")


RULES = (
    Rule("2", "a partition's bytes are within its limit, but for the first batch of an answer", ERROR, limits),
    Rule("8", "batches of a partition do not overlap", ERROR, overlaps),
    Rule("8 gap", "a fetch answer has no gap, from the asked offset on (compacted topics may)", WARNING, gaps),
    Rule("9", "an acknowledged batch is read as it was written", ERROR, same_bytes),
    Rule(
        "10", "high watermark, last stable offset and log start never fall; log start and LSO <= HW", ERROR, watermarks
    ),
    Rule("12", "records that a fetch gets end behind the asked offset", ERROR, progress),
    Rule("18", "OFFSET_OUT_OF_RANGE is told only of offsets outside the log", ERROR, out_of_range),
)
