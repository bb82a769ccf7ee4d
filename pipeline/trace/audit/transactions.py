"""Rules of isolation level read_committed (KIP-98).

A trace lacks the record of a transaction marker, so only a response that lists an aborted transaction shows that it was aborted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ERROR, EVER_NS, NAMED, NEVER_NS, READ_COMMITTED, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def below_stable(tables: Tables) -> DataFrame:
    return tables.sql(f"""
        SELECT run, seq, {NAMED}, partition, last_stable_offset, next_offset, next_offset > last_stable_offset AS broken,
               CAST(next_offset - last_stable_offset AS double) AS excess
        FROM {{partitions}}
        WHERE api = 'Fetch' AND isolation = {READ_COMMITTED} AND replica_id < 0 AND next_offset IS NOT NULL AND last_stable_offset >= 0
    """).withColumnRenamed("where_", "topic")


def aborted_listed(tables: Tables) -> DataFrame:
    """Check that a transaction which one response lists as aborted is listed by every read_committed response with a batch of it.

    A transaction extends from its first offset to the next marker of its producer. It is checked only if the trace has every offset between the
    two: another marker may lie in a part that was not fetched.
    """
    rows = tables.sql(f"""
        WITH answers AS (
            SELECT run, seq, {NAMED}, partition, ready_ns,
                   from_json(coalesce(aborted, '[]'), 'array<array<bigint>>') AS listed
            FROM {{partitions}} WHERE api = 'Fetch' AND isolation = {READ_COMMITTED} AND replica_id < 0 AND next_offset IS NOT NULL
        ), spans AS (
            SELECT run, where_, partition, transaction[0] AS producer_id, transaction[1] AS first_offset, max(ready_ns) AS listed_ns
            FROM (SELECT run, where_, partition, ready_ns, explode(listed) AS transaction FROM answers)
            GROUP BY run, where_, partition, transaction[0], transaction[1]
        ), seen AS (
            SELECT run, seq, {NAMED}, partition, producer_id, base_offset, last_offset, transactional, control FROM {{batches}}
            WHERE api = 'Fetch'
        ), parted AS (
            SELECT *, base_offset > 1 + max(last_offset) OVER (
                PARTITION BY run, where_, partition ORDER BY base_offset, last_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS parts
            FROM seen LEFT SEMI JOIN spans USING (run, where_, partition)
        ), stretches AS (
            SELECT *, count_if(parts) OVER (PARTITION BY run, where_, partition ORDER BY base_offset, last_offset) AS stretch FROM parted
        ), written AS (
            SELECT *, min(CASE WHEN control THEN struct(base_offset, stretch) END) OVER (
                PARTITION BY run, where_, partition, producer_id ORDER BY base_offset DESC) AS marker
            FROM stretches WHERE producer_id >= 0 AND (transactional OR control)
        ), inside AS (
            SELECT run, seq, where_, partition, producer_id, base_offset, marker.base_offset AS marker FROM written
            WHERE NOT control AND marker.stretch = stretch
        ), ended AS (
            SELECT DISTINCT run, where_, partition, producer_id, first_offset, listed_ns, marker
            FROM spans JOIN inside USING (run, where_, partition, producer_id) WHERE base_offset = first_offset
        ), overlapped AS (
            SELECT DISTINCT run, seq, where_, partition, producer_id, first_offset, listed_ns, marker
            FROM inside JOIN ended USING (run, where_, partition, producer_id, marker) WHERE base_offset >= first_offset
        )
        SELECT run, seq, where_, partition, producer_id, first_offset, marker,
               NOT array_contains(listed, array(producer_id, first_offset)) AS broken, CAST(1 AS double) AS excess, listed_ns, ready_ns
        FROM overlapped JOIN answers USING (run, seq, where_, partition)
    """)
    return tables.without_truncations(tables.undecided_if_missing(rows, NEVER_NS, EVER_NS), "listed_ns", "ready_ns")


RULES = (
    Rule("11", "a read_committed fetch gets no record at or above the last stable offset", ERROR, below_stable),
    Rule("11-aborted", "a read_committed response lists each aborted transaction of which it has a batch", ERROR, aborted_listed),
)  # fmt: skip
