"""Rules of reading committed records only (KIP-98). Whether a marker commits or aborts lies in its record, which a trace has not: that a
transaction was aborted is known from an answer that lists it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.trace.audit.rule import ERROR, EVER_NS, NAMED, NEVER_NS, READ_COMMITTED, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def below_stable(tables: Tables) -> DataFrame:
    return tables.sql(f"""
        SELECT run, seq, {NAMED}, partition, last_stable_offset, next_offset, next_offset > last_stable_offset AS broken,
               CAST(next_offset - last_stable_offset AS double) AS excess
        FROM audit_partitions
        WHERE api = 'Fetch' AND isolation = {READ_COMMITTED} AND replica_id < 0 AND next_offset IS NOT NULL AND last_stable_offset >= 0
    """).withColumnRenamed("where_", "topic")


def aborted_listed(tables: Tables) -> DataFrame:
    """A transaction that one answer lists as aborted is listed by every answer to read_committed with a batch of it: from its first
    offset up to its producer's next marker, as far as that was seen: where entries are missing, that may be another one."""
    rows = tables.sql(f"""
        WITH answers AS (
            SELECT run, seq, {NAMED}, partition,
                   from_json(coalesce(aborted, '[]'), 'array<array<bigint>>') AS listed
            FROM audit_partitions WHERE api = 'Fetch' AND isolation = {READ_COMMITTED} AND replica_id < 0 AND next_offset IS NOT NULL
        ), spans AS (
            SELECT DISTINCT run, where_, partition, one[0] AS producer_id, one[1] AS first_offset
            FROM (SELECT run, where_, partition, explode(listed) AS one FROM answers)
        ), written AS (
            SELECT run, seq, {NAMED}, partition, producer_id, base_offset, control FROM audit_batches
            WHERE api = 'Fetch' AND producer_id >= 0 AND (transactional OR control)
        ), ended AS (
            SELECT s.run, s.where_, s.partition, s.producer_id, s.first_offset, min(w.base_offset) AS marker
            FROM spans s JOIN written w ON w.run = s.run AND w.where_ = s.where_ AND w.partition = s.partition
                AND w.producer_id = s.producer_id AND w.control AND w.base_offset > s.first_offset
            GROUP BY s.run, s.where_, s.partition, s.producer_id, s.first_offset
        ), overlapped AS (
            SELECT DISTINCT w.run, w.seq, w.where_, w.partition, e.producer_id, e.first_offset, e.marker
            FROM written w JOIN ended e ON w.run = e.run AND w.where_ = e.where_ AND w.partition = e.partition
                AND w.producer_id = e.producer_id AND NOT w.control AND w.base_offset >= e.first_offset AND w.base_offset < e.marker
        )
        SELECT o.run, o.seq, o.where_ AS topic, o.partition, o.producer_id, o.first_offset, o.marker,
               NOT array_contains(listed, array(o.producer_id, o.first_offset)) AS broken, CAST(1 AS double) AS excess
        FROM overlapped o JOIN answers a ON a.run = o.run AND a.seq = o.seq AND a.where_ = o.where_ AND a.partition = o.partition
    """)
    return tables.whole(rows, NEVER_NS, EVER_NS)


RULES = (
    Rule("11", "read_committed gets nothing at or above the last stable offset", ERROR, below_stable),
    Rule("11 aborted", "an answer to read_committed lists each aborted transaction that it has a batch of", ERROR, aborted_listed),
)  # fmt: skip
