"""Rules of transactions: what read_committed consumers get, the last stable offset, and markers (KIP-98, KIP-890).

The rules use only requests, responses and the batches that consumers fetched, so they also apply to a Kafka broker behind the proxy. Traces before
version 5 do not say whether a marker commits or aborts. In such a trace, a transaction is known to be aborted only if a response lists it as aborted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.consumed_batches import ends
from kafkaproto.pipeline.trace.audit.rule import ERROR, EVER_NS, NAMED, NEVER_NS, READ_COMMITTED, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WITHOUT_EFFECT = "(14, 16, 51)"
"""SQL: error codes with which a coordinator rejects an EndTxn and changes nothing, so that the producer repeats the request.

They are COORDINATOR_LOAD_IN_PROGRESS (14), NOT_COORDINATOR (16) and CONCURRENT_TRANSACTIONS (51).
"""
RESPONSES = f"""(
    SELECT run, seq, {NAMED}, partition, ready_ns, from_json(coalesce(aborted, '[]'), 'array<array<bigint>>') AS listed
    FROM {{partitions}} WHERE api = 'Fetch' AND isolation = {READ_COMMITTED} AND replica_id < 0 AND next_offset IS NOT NULL)"""
"""SQL: a subquery with a row for each partition in a Fetch response to a read_committed consumer, if the response has records of the partition.

The column `listed` has the aborted transactions that the response lists, each as [producer id, first offset].
"""


# ---- isolation level read_committed ------------------------------------------------------------------------------------------


def below_stable(tables: Tables) -> DataFrame:
    return tables.sql(f"""
        SELECT run, seq, {NAMED}, partition, last_stable_offset, next_offset, next_offset > last_stable_offset AS broken,
               CAST(next_offset - last_stable_offset AS double) AS excess
        FROM {{partitions}}
        WHERE api = 'Fetch' AND isolation = {READ_COMMITTED} AND replica_id < 0 AND next_offset IS NOT NULL AND last_stable_offset >= 0
    """).withColumnRenamed("where_", "topic")


def _listed(tables: Tables, committed: bool) -> DataFrame:
    """Return a row for each pair of a read_committed response and a transaction that has batches in this response.

    committed: True to consider the transactions that were committed, False for transactions that were aborted.

    Columns:

    - run (the recording), seq, where_ (topic name or id), partition: the partition in the fetch response.
    - producer_id, first_offset: the transaction, and the first offset of its batches in the response. marker: the offset of its marker.
    - lists: whether the response lists the transaction as aborted.
    """
    return tables.sql(
        f"""
        WITH delivered AS (
            SELECT DISTINCT run, seq, where_, partition, life, base_offset FROM {{consumed}}
        ), overlapped AS (
            SELECT run, d.seq, where_, partition, producer_id, min(base_offset) AS first_offset, marker_offset AS marker,
                   max(before_offset) AS before_offset, max(base_offset) AS last_base
            FROM {{ends}} e JOIN (SELECT * FROM delivered) d USING (run, where_, partition, life, base_offset)
            WHERE committed = {committed} GROUP BY run, d.seq, where_, partition, producer_id, marker_offset
        )
        SELECT run, seq, where_, partition, producer_id, first_offset, marker,
               exists(listed, l -> l[0] = producer_id AND l[1] <= last_base AND l[1] > coalesce(before_offset, -1)) AS lists
        FROM overlapped JOIN {RESPONSES} USING (run, seq, where_, partition)
        """,
        ends=ends(tables),
    )


def aborted_listed(tables: Tables) -> DataFrame:
    """Check that a read_committed response lists each aborted transaction that has a batch in the response.

    Returns one row per response and aborted transaction.

    - A transaction is known to be aborted from its marker or, if the trace does not say whether the marker aborts, from any response that lists the
      transaction as aborted.
    - A batch belongs to the transaction that the next marker of its producer ends. A batch is checked only if the trace has every offset from the
      batch to this marker: otherwise an earlier marker may be missing.

    Columns:

    - run (the recording), seq (of the fetch), topic, partition, producer_id: the response and the transaction.
    - first_offset: the first offset of the transaction's batches in the response. If only another response shows the abort, it is the first offset of
      the transaction.
    - marker: offset of the transaction's marker.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: 1, because a fault of this kind has no size.
    """
    by_marker = _listed(tables, committed=False).selectExpr(
        "* EXCEPT (lists)", "NOT lists AS broken", "CAST(1 AS double) AS excess"
    )
    by_list = tables.sql(
        f"""
        WITH spans AS (
            SELECT run, where_, partition, transaction[0] AS producer_id, transaction[1] AS first_offset, max(ready_ns) AS listed_ns
            FROM (SELECT run, where_, partition, ready_ns, explode(listed) AS transaction FROM {RESPONSES})
            GROUP BY run, where_, partition, transaction[0], transaction[1]
        ), seen AS (
            SELECT run, seq, {NAMED}, partition, producer_id, base_offset, last_offset, transactional, control, committed FROM {{batches}}
            WHERE api = 'Fetch'
        ), parted AS (
            SELECT *, base_offset > 1 + max(last_offset) OVER (
                PARTITION BY run, where_, partition ORDER BY base_offset, last_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS parts
            FROM seen LEFT SEMI JOIN spans USING (run, where_, partition)
        ), stretches AS (
            SELECT *, count_if(parts) OVER (PARTITION BY run, where_, partition ORDER BY base_offset, last_offset) AS stretch FROM parted
        ), written AS (
            SELECT *, min(CASE WHEN control THEN struct(base_offset, stretch, committed) END) OVER (
                PARTITION BY run, where_, partition, producer_id ORDER BY base_offset DESC) AS marker
            FROM stretches WHERE producer_id >= 0 AND (transactional OR control)
        ), inside AS (
            SELECT run, seq, where_, partition, producer_id, base_offset, marker.base_offset AS marker FROM written
            WHERE NOT control AND marker.stretch = stretch AND marker.committed IS NULL
        ), ended AS (
            SELECT DISTINCT run, where_, partition, producer_id, first_offset, listed_ns, marker
            FROM spans JOIN inside USING (run, where_, partition, producer_id) WHERE base_offset = first_offset
        ), overlapped AS (
            SELECT DISTINCT run, seq, where_, partition, producer_id, first_offset, listed_ns, marker
            FROM inside JOIN ended USING (run, where_, partition, producer_id, marker) WHERE base_offset >= first_offset
        )
        SELECT run, seq, where_, partition, producer_id, first_offset, marker,
               NOT array_contains(listed, array(producer_id, first_offset)) AS broken, CAST(1 AS double) AS excess, listed_ns, ready_ns
        FROM overlapped JOIN {RESPONSES} USING (run, seq, where_, partition)
        """
    )
    decided = tables.without_truncations(
        tables.undecided_if_missing(by_list, NEVER_NS, EVER_NS), "listed_ns", "ready_ns"
    )
    return by_marker.withColumnRenamed("where_", "topic").unionByName(decided)


def committed_visible(tables: Tables) -> DataFrame:
    """Check that no read_committed response lists a committed transaction as aborted: a consumer would skip the transaction's records.

    Returns one row for each pair of a response and a committed transaction, if the response has a batch of the transaction.

    Columns:

    - run (the recording), seq (of the fetch), topic, partition, producer_id: the response and the transaction.
    - first_offset: the first offset of the transaction's batches in the response. marker: offset of the transaction's marker.
    - broken: true if the row is a fault.
    - excess: 1, because a fault of this kind has no size.
    """
    rows = _listed(tables, committed=True)
    return rows.selectExpr("* EXCEPT (lists)", "lists AS broken", "CAST(1 AS double) AS excess").withColumnRenamed(
        "where_", "topic"
    )


# ---- the last stable offset --------------------------------------------------------------------------------------------------


def _open_below_stable(tables: Tables, checks: str) -> DataFrame:
    """Check observed last stable offsets: a transaction with a batch below the last stable offset must have ended below the high watermark.

    checks: SQL for the observations. An observation is the last stable offset and the high watermark of a partition at one time. Columns: run, seq,
    where_ (topic name or id), partition, last_stable_offset, high_watermark and at_ns (time of the observation).

    The end of a transaction is the offset of its marker. If the marker is unknown, the end is the offset up to which the trace has all batches.

    Returns one row per observation. If several transactions have a batch below `last_stable_offset`, the row is about the one with the highest end.
    An observation gets no row if its partition has no transactional batches, or if it would be a fault that a truncation of the log may explain.
    Columns:

    - run (the recording), seq, topic, partition, last_stable_offset, high_watermark: from `checks`.
    - producer_id: producer id of the transaction. first_offset: base offset of its last known batch below `last_stable_offset`. Both are null if no
      transaction has a known batch below `last_stable_offset`.
    - broken: true (a fault) if the end of the transaction is not below `high_watermark`; null (undecided) if missing entries may explain this.
    - excess: `last_stable_offset` minus `first_offset`; null if `first_offset` is null.
    """
    rows = tables.sql(
        f"""
        WITH points AS (
            SELECT run, seq, where_, partition, last_stable_offset AS at_offset, 0 AS turn, high_watermark, at_ns,
                   CAST(NULL AS struct<undecided: bigint, first_offset: bigint, producer_id: bigint, seen_ns: bigint>) AS open
            FROM ({checks}) LEFT SEMI JOIN (SELECT run, where_, partition FROM {{ends}}) USING (run, where_, partition)
            UNION ALL
            SELECT run, seq, where_, partition, base_offset, 1, NULL, NULL,
                   struct(coalesce(marker_offset, seen_end) AS undecided, base_offset AS first_offset, producer_id, seen_ns)
            FROM {{ends}}
        ), known AS (
            SELECT *, max(open) OVER (PARTITION BY run, where_, partition ORDER BY at_offset, turn) AS last_open FROM points
        )
        SELECT run, seq, where_, partition, at_offset AS last_stable_offset, high_watermark, last_open.producer_id AS producer_id,
               last_open.first_offset AS first_offset, coalesce(last_open.undecided >= high_watermark, false) AS broken,
               CAST(at_offset - last_open.first_offset AS double) AS excess, last_open.seen_ns AS seen_ns, at_ns
        FROM known WHERE turn = 0
        """,
        ends=ends(tables),
    )
    return tables.without_truncations(rows, "seen_ns", "at_ns")


def stable_in_responses(tables: Tables) -> DataFrame:
    """Check that the last stable offset in a Fetch response does not pass an open transaction. Returns one row per partition of a response.

    A transaction is known to be open if its marker is not below the response's high watermark, or if the trace has every batch from a batch of the
    transaction to the high watermark, and no marker of the transaction among them.

    Columns:

    - run (the recording), seq (of the fetch), topic, partition, last_stable_offset, high_watermark: the partition of a response.
    - producer_id, first_offset: producer id of a transaction with a batch below `last_stable_offset`, and the base offset of such a batch. If there
      are several transactions, it is the one whose end has the highest offset. Both are null if no transaction is known.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: `last_stable_offset` minus `first_offset`.
    """
    return _open_below_stable(
        tables,
        f"""
        SELECT run, seq, {NAMED}, partition, last_stable_offset, high_watermark, ready_ns AS at_ns FROM {{partitions}}
        WHERE api = 'Fetch' AND replica_id < 0 AND error = 0 AND last_stable_offset >= 0""",
    )


def stable_in_replicas(tables: Tables) -> DataFrame:
    """Check that the last stable offset that a replica recorded does not pass an open transaction.

    Returns one row per recorded change of a replica's offsets. Only the broker of this project records these changes.

    Columns:

    - run (the recording), seq (of the change), topic, partition, last_stable_offset, high_watermark: the recorded offsets.
    - producer_id, first_offset: producer id of a transaction with a batch below `last_stable_offset`, and the base offset of such a batch. If there
      are several transactions, it is the one whose end has the highest offset. Both are null if no transaction is known.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: `last_stable_offset` minus `first_offset`.
    """
    return _open_below_stable(
        tables, "SELECT run, seq, topic AS where_, partition, last_stable_offset, high_watermark, at_ns FROM {state}"
    )


# ---- markers -----------------------------------------------------------------------------------------------------------------


def markers(tables: Tables) -> DataFrame:
    """Check that each partition of a transaction has the right marker: a commit or an abort, as the EndTxn of the transaction requested.

    Returns one row per transaction and partition to which the transaction wrote, if EndTxn succeeded and the trace shows whether the marker commits.
    It is also a fault if no marker is between the batches of two successive transactions of a producer. The row of the later transaction is then the
    fault, even if its marker is unknown. Partitions for which an admin wrote markers are left out.

    Columns:

    - run (the recording), seq (of the EndTxn), transactional_id, topic, partition, producer_id, first_offset: the transaction.
    - decided: true if EndTxn commits.
    - marker_offset: offset of the marker. committed: true if the marker commits. Both are null if no marker is known.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: 1, because a fault of this kind has no size.
    """
    rows = tables.sql(
        f"""
        WITH points AS (
            SELECT run, producer_id, producer_epoch, {NAMED}, partition, base_offset, ready_ns AS at_ns, 0 AS turn, CAST(NULL AS struct<
                   seq: bigint, begun_ns: bigint, error: int, committed: boolean, transactional_id: string>) AS ended
            FROM {{batches}} WHERE api = 'Produce' AND transactional AND NOT control AND base_offset IS NOT NULL
            UNION ALL
            SELECT run, producer_id, producer_epoch, NULL, NULL, NULL, begun_ns, 1,
                   struct(seq, begun_ns, error, committed, transactional_id)
            FROM {{transactions}} WHERE api = 'EndTxn' AND NOT coalesce(error IN {WITHOUT_EFFECT}, false)
        ), written AS (
            SELECT * EXCEPT (ended), first(ended, true) OVER (
                PARTITION BY run, producer_id, producer_epoch ORDER BY at_ns, turn ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS ended
            FROM points
        ), by_admin AS (
            SELECT DISTINCT run, topic AS where_, partition, producer_id FROM {{transactions}} WHERE api = 'WriteTxnMarkers'
        ), joined AS (
            SELECT run, where_, partition, producer_id, base_offset, w.producer_epoch, w.at_ns, w.ended, e.life, e.stretch, e.seen_ns,
                   e.marker_offset, e.committed
            FROM written w JOIN {{ends}} e USING (run, where_, partition, producer_id, base_offset)
            LEFT ANTI JOIN by_admin USING (run, where_, partition, producer_id)
            WHERE w.turn = 0 AND w.ended.error = 0 AND w.producer_epoch = e.producer_epoch
        ), known AS (
            SELECT *, min(ended.seq) OVER (PARTITION BY run, where_, partition, producer_id, life, stretch, marker_offset) AS first_seq FROM joined
        )
        SELECT run, ended.seq AS seq, ended.transactional_id AS transactional_id, where_, partition, producer_id, min(base_offset) AS first_offset,
               marker_offset, ended.committed AS decided, committed,
               max(marker_offset IS NOT NULL AND committed <> ended.committed OR first_seq < ended.seq) AS broken, CAST(1 AS double) AS excess,
               min(at_ns) AS written_ns, max(seen_ns) AS seen_ns
        FROM known WHERE marker_offset IS NULL AND first_seq < ended.seq OR committed IS NOT NULL
        GROUP BY run, ended, where_, partition, producer_id, marker_offset, committed
        """,
        ends=ends(tables),
    )
    return tables.without_truncations(rows, "written_ns", "seen_ns")


RULES = (
    Rule("11", "a read_committed fetch gets no record at or above the last stable offset", ERROR, below_stable),
    Rule("11-aborted", "a read_committed response lists each aborted transaction that has a batch in it", ERROR, aborted_listed),
    Rule("24", "no read_committed response lists a committed transaction as aborted", ERROR, committed_visible),
    Rule("25", "the last stable offset of a response never passes an open transaction", ERROR, stable_in_responses),
    Rule("25-moved", "the last stable offset of a replica never passes an open transaction", ERROR, stable_in_replicas),
    Rule("28", "each transaction is committed or aborted, as its EndTxn requested, on every partition to which it wrote", ERROR, markers),
)  # fmt: skip
