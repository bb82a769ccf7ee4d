"""Rules of offsets: progress of fetches, what batches, watermarks and epochs must not do, what a look-up finds.

Where something happened in between that may cut a log (`Tables.uncut`), two rows are not compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ALL, ERROR, EVER_NS, NAMED, NEVER_NS, WARNING, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OFFSET_OUT_OF_RANGE = 1
LATEST = -1
IN_ANSWER = "PARTITION BY run, seq, topic, topic_id, partition ORDER BY place"


def overlaps(tables: Tables) -> DataFrame:
    """In one answer, and of all acknowledged batches of a partition: those that only a leader had (acks=1) with others of that broker. A
    repeated batch of an idempotent producer is the same batch."""
    fetched = tables.sql(f"""
        SELECT run, seq, api, {NAMED}, partition, base_offset, lag(last_offset) OVER ({IN_ANSWER}) AS before_, ready_ns, ready_ns AS before_ns
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
    return tables.uncut(broken, "before_ns", "ready_ns")


def gaps(tables: Tables) -> DataFrame:
    """Of fetch answers only: what was produced may have neighbours that the trace has not. Topics that are known to be compacted are not
    asked about."""
    rows = tables.sql(f"""
        SELECT *, base_offset > expected_offset AS broken, CAST(base_offset AS double) - expected_offset AS excess FROM (
            SELECT run, seq, coalesce(topic, topic_id) AS topic, partition, lag(last_offset) OVER ({IN_ANSWER}) + 1 AS expected_offset,
                   base_offset, ready_ns
            FROM {{batches}} WHERE api = 'Fetch'
            UNION ALL
            SELECT run, seq, coalesce(topic, topic_id), partition, asked_offset, base_offset, ready_ns FROM {{partitions}}
            WHERE api = 'Fetch')
        WHERE expected_offset IS NOT NULL AND base_offset IS NOT NULL
    """).join(
        tables.sql("SELECT run, where_ AS topic FROM {policies} WHERE compacts").hint("broadcast"),
        ["run", "topic"],
        "left_anti",
    )
    return tables.whole_before(rows, "ready_ns").drop("ready_ns")


def watermarks(tables: Tables) -> DataFrame:
    """What a fetch is told that came after another was answered by the same broker: no less than the most that was told until then, in the
    whole run; where the last of those answers was higher, too, that one is compared, as fewer things have happened since. Versions that lack
    a column, and logs that have none, tell -1."""
    names = ("high_watermark", "last_stable_offset", "log_start")
    most = ", ".join(f"max(struct({name} AS told, ready_ns AS at_ns)) OVER p AS most_{name}" for name in names)
    unordered = "begun_ns < last.ready_ns"  # of one connection: how far others had come is not known

    def fall(of: str, name: str) -> str:
        return f"IF({name} >= 0, {of} - {name}, 0)"

    fell = f"{unordered} OR greatest({', '.join(fall(f'last.{name}', name) for name in names)}) > 0"
    before = ", ".join(f"IF({fell}, last.{name}, most_{name}.told) AS before_{name}" for name in names)
    at = ", ".join(f"IF({fall(f'most_{name}.told', name)} > 0, most_{name}.at_ns, NULL)" for name in names)
    falls = ", ".join(fall(f"before_{name}", name) for name in names)
    rows = tables.sql(f"""
        WITH told AS (
            SELECT run, seq, broker, {NAMED}, partition, begun_ns, ready_ns, conn, {", ".join(names)}, {most},
                   last(struct(conn, ready_ns, {", ".join(names)})) OVER p AS last
            FROM {{partitions}} WHERE api = 'Fetch' AND error = 0 AND high_watermark >= 0
            WINDOW p AS (PARTITION BY run, broker, coalesce(topic, topic_id), partition ORDER BY ready_ns, seq
                         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        ), fallen AS (
            SELECT run, seq, broker, where_, partition, {", ".join(names)}, {before},
                   IF({fell}, last.ready_ns, coalesce(greatest({at}), last.ready_ns)) AS before_ns, ready_ns
            FROM told WHERE begun_ns >= last.ready_ns OR conn = last.conn
        )
        SELECT *, CAST(greatest({falls}, 0) AS double) AS excess, greatest({falls}, 0) > 0 AS broken FROM fallen
    """)
    return tables.uncut(rows, "before_ns", "ready_ns")


def moves(tables: Tables) -> DataFrame:
    """Of each replica as its broker recorded it, every move with the one before; not where it began anew, or something cut its log."""
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
    return tables.uncut(rows, "before_ns", "at_ns")


def ordered_offsets(tables: Tables) -> DataFrame:
    """As answers tell them, and as a broker recorded its logs. Those end behind the high watermark where it leads, and where followers take
    no more of it than they have, as Kafka's do; a follower under `semantics=kip` knows of what it has not got yet."""
    rows = tables.sql(f"""
        WITH kafkas AS (
            SELECT run, max(get_json_object(facts, '$.semantics') = 'kafka') AS kafkas FROM {{events}} WHERE kind = 'meta' GROUP BY run
        ), told AS (
            SELECT run, seq, broker, {NAMED}, partition, log_start, last_stable_offset, high_watermark, NULL AS log_end, NULL AS needs_all_until_ns
            FROM {{partitions}} WHERE api = 'Fetch' AND error = 0 AND high_watermark >= 0
            UNION ALL
            SELECT /*+ BROADCAST(k), BROADCAST(o) */ s.run, s.seq, s.broker, s.topic, s.partition, log_start, last_stable_offset, high_watermark,
                   IF(coalesce(kafkas, false) OR try_element_at(filter(states, x -> x.leader IS NOT NULL AND x.seq < s.seq), -1).leader = s.broker,
                      log_end, NULL),
                   IF(coalesce(kafkas, false), NULL, at_ns)
            FROM {{state}} s LEFT JOIN kafkas k ON k.run = s.run
            LEFT JOIN {{states_of}} o ON o.run = s.run AND o.where_ = s.topic AND o.partition = s.partition
            WHERE high_watermark >= 0
        ), apart AS (
            SELECT *, greatest(IF(last_stable_offset >= 0, last_stable_offset - high_watermark, 0),
                               IF(last_stable_offset >= 0, try_subtract(log_start, last_stable_offset), 0),
                               try_subtract(log_start, high_watermark), 0) AS above, greatest(high_watermark - log_end, 0) AS behind
            FROM told
        )
        SELECT run, seq, broker, where_ AS topic, partition, log_start, last_stable_offset, high_watermark, log_end, above + behind > 0 AS broken,
               CAST(greatest(above, behind) AS double) AS excess, IF(above > 0, NULL, needs_all_until_ns) AS needs_all_until_ns
        FROM apart
    """)
    return tables.whole_before(rows, "needs_all_until_ns").drop("needs_all_until_ns")


def epochs(tables: Tables) -> DataFrame:
    """As they are stored, each batch with the one before: of those of one answer, and of the first and last ones of all answers of a broker to
    consumers, by their offsets."""
    of_batch = "run, where_, partition, base_offset, epoch"
    in_one = f"""
        SELECT {of_batch.replace("where_", NAMED)}, seq, place, NULL AS first_ns, NULL AS last_ns FROM {{batches}}
        WHERE api = 'Fetch' AND epoch >= 0"""
    ends = f"""
        SELECT {of_batch}, broker, life, min(seq) AS seq, min(begun_ns) AS first_ns, max(ready_ns) AS last_ns FROM (
            SELECT *, place = min(place) OVER a OR place = max(place) OVER a AS ends FROM {{consumed}} WHERE epoch >= 0
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
    return tables.uncut(
        pairs(in_one, "run, seq, where_, partition", "place").unionByName(apart), "before_ns", "then_ns"
    ).drop("before_seq")


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
        "CAST(asked_offset AS double) - next_offset + 1 AS excess",
    )


def latest(tables: Tables) -> DataFrame:
    """The end that a client may read: no less than any answer of the same broker told before, no more than any tells afterwards."""
    rows = tables.sql(f"""
        WITH looked AS (
            SELECT run, broker, {NAMED}, partition, begun_ns, ready_ns, NULL, NULL, seq, place, base_offset, isolation
            FROM {{partitions}} WHERE api = 'ListOffsets' AND error = 0 AND asked_timestamp = {LATEST} AND replica_id = -1 AND base_offset >= 0
        ), told AS (
            SELECT run, broker, {NAMED}, partition, begun_ns, ready_ns, high_watermark, last_stable_offset, NULL AS seq, NULL AS place, NULL AS found,
                   0 AS isolation
            FROM {{partitions}} WHERE api = 'Fetch' AND error = 0 AND high_watermark >= 0
        ), sightings AS (
            SELECT * FROM told LEFT SEMI JOIN looked USING (run, broker, where_, partition)
            UNION ALL SELECT * FROM looked
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
        SELECT run, broker, where_, partition, seq, isolation, found, begun_ns,
               max(CASE WHEN side = 1 THEN IF(isolation = 1, lso_before, hw_before) END) AS low,
               max(CASE WHEN side = 2 THEN IF(isolation = 1, lso_behind, hw_behind) END) AS high
        FROM bounded WHERE seq IS NOT NULL GROUP BY run, broker, where_, partition, seq, place, isolation, found, begun_ns
    """).selectExpr(
        "run", "seq", "broker", "where_", "partition", "isolation", "found", "low.end AS lowest", "high.end AS highest",
        "coalesce(low.at_ns, begun_ns) AS before_ns", "coalesce(high.at_ns, begun_ns) AS then_ns",
    ).where("lowest IS NOT NULL OR highest IS NOT NULL")  # fmt: skip
    broken = rows.selectExpr(
        "*",
        "coalesce(found < lowest, false) OR coalesce(found > highest, false) AS broken",
        "CAST(greatest(lowest - found, found - highest, 0) AS double) AS excess",
    )
    return tables.uncut(broken, "before_ns", "then_ns")


def earliest_at(tables: Tables) -> DataFrame:
    """What is found for a time has that time or a later one, and no batch before it has: of those that were fetched from a log whose
    start never moved: any answer may tell that it has. Where records may go from the midst of a log (a topic that is compacted, or of which
    nobody told), the batch has to be there after the look-up."""
    rows = tables.sql(f"""
        WITH looked AS (
            SELECT run, {NAMED}, partition, base_offset AS at_offset, asked_timestamp, answered_timestamp, seq, 1 AS turn, NULL AS max_timestamp,
                   ready_ns AS at_ns
            FROM {{partitions}}
            WHERE api = 'ListOffsets' AND error = 0 AND asked_timestamp >= 0 AND base_offset >= 0 AND answered_timestamp >= 0
        ), moved AS (
            SELECT run, coalesce(topic, topic_id) AS where_, partition, max(log_start) > 0 AS moved FROM {{partitions}}
            WHERE api IN ('Fetch', 'Produce') GROUP BY run, coalesce(topic, topic_id), partition
        ), points AS (
            SELECT * FROM looked
            UNION ALL
            SELECT * FROM (
                SELECT run, {NAMED}, partition, last_offset, NULL, NULL, seq, 0, max_timestamp, begun_ns FROM {{batches}}
                WHERE api = 'Fetch' AND NOT control AND count > 0
            ) fetched LEFT SEMI JOIN looked USING (run, where_, partition)
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
        SELECT run, seq, where_, partition, asked_timestamp, at_offset AS found, answered_timestamp, before.max_timestamp AS reached_before,
               answered_timestamp < asked_timestamp OR coalesce(before.max_timestamp >= asked_timestamp, false) AS broken,
               CAST(greatest(asked_timestamp - answered_timestamp, 1) AS double) AS excess,
               IF(answered_timestamp < asked_timestamp, at_ns, coalesce(before.at_ns, at_ns)) AS one_ns, at_ns AS other_ns
        FROM known
    """)
    return tables.uncut(tables.whole(rows, NEVER_NS, EVER_NS), "one_ns", "other_ns")


def out_of_range(tables: Tables) -> DataFrame:
    """Against the last high watermark told before and the first log start told after: what lies between was readable all the time."""
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
        SELECT run, seq, broker, where_, partition, asked_offset, later_start AS log_start, hw AS high_watermark, before_ns, then_ns,
               asked_offset BETWEEN later_start AND hw AS broken, CAST(1 AS double) AS excess
        FROM known
        WHERE error = {OFFSET_OUT_OF_RANGE} AND asked_offset IS NOT NULL AND hw IS NOT NULL AND later_start IS NOT NULL
    """)
    return tables.uncut(rows, "before_ns", "then_ns")


RULES = (
    Rule("8", "batches of a partition do not overlap", ERROR, overlaps),
    Rule(
        "8 gap",
        "a fetch answer has no gap, from the asked offset on (compacted topics may, where nobody told that they are)",
        WARNING,
        gaps,
    ),
    Rule("10", "high watermark, last stable offset and log start never fall", ERROR, watermarks),
    Rule("10 moved", "no recorded move of a high watermark, last stable offset or log start is a fall", ERROR, moves),
    Rule("10 order", "log start <= last stable offset <= high watermark <= log end", ERROR, ordered_offsets),
    Rule("10 epoch", "leader epochs never fall from batch to batch", ERROR, epochs),
    Rule("12", "records that a fetch gets end behind the asked offset", ERROR, progress),
    Rule("16", "the latest offset is the high watermark or the last stable offset of that instant", ERROR, latest),
    Rule("16 time", "the offset of a time is the first that has it", ERROR, earliest_at),
    Rule("18", "OFFSET_OUT_OF_RANGE is told only of offsets outside the log", ERROR, out_of_range),
)
