"""Rules of transactions: what read_committed consumers get, the last stable offset, epochs of producers, and markers (KIP-98, KIP-890).

The rules use only requests, responses and the batches that consumers fetched, so they also apply to a Kafka broker behind the proxy. Only traces from
version 5 on contain whether a marker commits or aborts. In older traces, only a response that lists a transaction as
aborted shows that it was aborted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ERROR, EVER_NS, NAMED, NEVER_NS, READ_COMMITTED, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERIFIED_PRODUCE = 11
"""The first Produce version for which a broker asks the coordinator whether a partition belongs to the transaction (3.8, KIP-890)."""
WITHOUT_EFFECT = "(14, 16, 51)"
"""SQL: error codes with which a coordinator rejects an EndTxn and changes nothing, so that the producer repeats the request.

They are COORDINATOR_LOAD_IN_PROGRESS (14), NOT_COORDINATOR (16) and CONCURRENT_TRANSACTIONS (51).
"""
ANSWERS = f"""(
    SELECT run, seq, {NAMED}, partition, ready_ns, from_json(coalesce(aborted, '[]'), 'array<array<bigint>>') AS listed
    FROM {{partitions}} WHERE api = 'Fetch' AND isolation = {READ_COMMITTED} AND replica_id < 0 AND next_offset IS NOT NULL)"""
"""SQL: a subquery with a row for each partition in a Fetch response to a read_committed consumer, if the response has records of the partition.

The column `listed` has the aborted transactions that the response lists, each as [producer id, first offset].
"""


def _logs(tables: Tables) -> DataFrame:
    """Return the batches of magic 2 that consumers received, each once, even if several responses contain it.

    Columns: run (the recording), where_ (topic name or id), partition, base_offset, last_offset, producer_id, producer_epoch, base_sequence,
    transactional, control, committed (whether a marker commits; null for other batches), seq and seen_ns (a fetch with the batch, and the latest time
    of such a fetch), life and stretch.

    The last two group the batches of a partition. life: equal for batches of the same log; it changes if the topic was created again or the log was
    truncated. stretch: equal for batches of a log without missing offsets between them, so that no marker between them is unknown. Offsets are
    missing if they were not fetched, or were removed by compaction.
    """
    return tables.sql("""
        WITH seen AS (
            SELECT run, where_, partition, life, base_offset, last_offset, producer_id, producer_epoch, base_sequence, transactional, control,
                   max(committed) AS committed, min(seq) AS seq, max(ready_ns) AS seen_ns
            FROM {consumed} WHERE crc IS NOT NULL
            GROUP BY run, where_, partition, life, base_offset, last_offset, producer_id, producer_epoch, base_sequence, transactional, control
        ), parted AS (
            SELECT *, base_offset > 1 + max(last_offset) OVER (
                PARTITION BY run, where_, partition, life ORDER BY base_offset, last_offset
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS parts
            FROM seen
        )
        SELECT * EXCEPT (parts), count_if(parts) OVER (PARTITION BY run, where_, partition, life ORDER BY base_offset, last_offset) AS stretch
        FROM parted""")


def _ends(tables: Tables) -> DataFrame:
    """Return the transactional batches that consumers received, each with the marker that ends its transaction.

    Columns: run (the recording), where_ (topic name or id), partition, producer_id, producer_epoch, base_offset, seq and seen_ns (a fetch with the
    batch, and the latest time of such a fetch), life (equal for batches of the same log), stretch (equal for batches without missing offsets between
    them), and the following.

    marker_offset, committed: offset and decision of the marker; null if offsets are missing between the batch and the marker, because an earlier
    marker may be there. before_offset: offset of the producer's previous marker, null if it is unknown. seen_end: the trace has every batch from this
    batch up to this offset.
    """
    return tables.sql(
        """
        WITH marked AS (
            SELECT *, max(last_offset) OVER (PARTITION BY run, where_, partition, life, stretch) + 1 AS seen_end,
                   min(IF(control, struct(base_offset, committed), NULL)) OVER (
                       PARTITION BY run, where_, partition, life, stretch, producer_id ORDER BY base_offset DESC) AS marker,
                   max(IF(control, base_offset, NULL)) OVER (
                       PARTITION BY run, where_, partition, life, stretch, producer_id ORDER BY base_offset) AS before_offset
            FROM {logs} WHERE producer_id >= 0
        )
        SELECT run, where_, partition, life, stretch, seq, seen_ns, producer_id, producer_epoch, base_offset, before_offset, seen_end,
               marker.base_offset AS marker_offset, marker.committed AS committed
        FROM marked WHERE transactional AND NOT control
        """,
        logs=_logs(tables),
    )


# ---- isolation level read_committed ------------------------------------------------------------------------------------------


def below_stable(tables: Tables) -> DataFrame:
    return tables.sql(f"""
        SELECT run, seq, {NAMED}, partition, last_stable_offset, next_offset, next_offset > last_stable_offset AS broken,
               CAST(next_offset - last_stable_offset AS double) AS excess
        FROM {{partitions}}
        WHERE api = 'Fetch' AND isolation = {READ_COMMITTED} AND replica_id < 0 AND next_offset IS NOT NULL AND last_stable_offset >= 0
    """).withColumnRenamed("where_", "topic")


def _listed(tables: Tables, committed: bool) -> DataFrame:
    """Return a row for each pair of a read_committed response and a transaction of which the response contains batches.

    committed: True to consider the transactions that were committed, False for those that were aborted.

    Columns: run (the recording), seq (of the fetch), where_ (topic name or id), partition, producer_id, first_offset (of the transaction), marker
    (offset of its marker) and lists (true if the response lists the transaction as aborted).
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
        FROM overlapped JOIN {ANSWERS} USING (run, seq, where_, partition)
        """,
        ends=_ends(tables),
    )


def aborted_listed(tables: Tables) -> DataFrame:
    """Check that a read_committed response lists each aborted transaction of which it has a batch.

    Returns one row per response and aborted transaction. That a transaction was aborted is known from its marker, or, if the trace does not say what
    the marker decided, from another response that lists the transaction. A transaction extends from its first offset to the next marker of its
    producer. It is checked only if the trace has every offset from the first one to the marker: another marker may lie in a part that was not
    fetched.

    Columns: run (the recording), seq (of the fetch), topic, partition, producer_id, first_offset (of the transaction), marker (offset of its marker),
    broken (true: the row is a fault; null: undecided, because entries are missing) and excess (always 1).
    """
    by_marker = _listed(tables, committed=False).selectExpr(
        "* EXCEPT (lists)", "NOT lists AS broken", "CAST(1 AS double) AS excess"
    )
    by_list = tables.sql(
        f"""
        WITH spans AS (
            SELECT run, where_, partition, transaction[0] AS producer_id, transaction[1] AS first_offset, max(ready_ns) AS listed_ns
            FROM (SELECT run, where_, partition, ready_ns, explode(listed) AS transaction FROM {ANSWERS})
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
        FROM overlapped JOIN {ANSWERS} USING (run, seq, where_, partition)
        """
    )
    decided = tables.without_truncations(
        tables.undecided_if_missing(by_list, NEVER_NS, EVER_NS), "listed_ns", "ready_ns"
    )
    return by_marker.withColumnRenamed("where_", "topic").unionByName(decided)


def committed_visible(tables: Tables) -> DataFrame:
    """Check that no read_committed response lists a committed transaction as aborted: its consumer would skip the records.

    Returns one row for each pair of a response and a committed transaction, if the response has a batch of the transaction.

    Columns: run (the recording), seq (of the fetch), topic, partition, producer_id, first_offset (of the transaction), marker (offset of its marker),
    broken (true: the row is a fault) and excess (always 1).
    """
    rows = _listed(tables, committed=True)
    return rows.selectExpr("* EXCEPT (lists)", "lists AS broken", "CAST(1 AS double) AS excess").withColumnRenamed(
        "where_", "topic"
    )


# ---- the last stable offset --------------------------------------------------------------------------------------------------


def _open_below_stable(tables: Tables, checks: str) -> DataFrame:
    """Check that each transaction that starts below a last stable offset has its marker below the high watermark that was seen with it.

    checks: SQL for the observed last stable offsets, with columns run, seq, where_ (topic name or id), partition, last_stable_offset, high_watermark
    and at_ns (time of the observation). Observations of partitions without transactional batches are dropped.

    Returns a DataFrame with one row for each other observation. Columns: run (the recording), seq, topic, partition, last_stable_offset,
    high_watermark, producer_id and first_offset (the last transaction that starts below the last stable offset, null if none is known), broken (true:
    the row is a fault, because the transaction is still open; null: undecided, because entries are missing) and excess (`last_stable_offset` minus
    `first_offset`).
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
        ends=_ends(tables),
    )
    return tables.without_truncations(rows, "seen_ns", "at_ns")


def stable_in_responses(tables: Tables) -> DataFrame:
    """Check that the last stable offset in a Fetch response does not pass an open transaction. Returns one row per partition of a response.

    A transaction is known to be open if the trace has every batch from its start to the response's high watermark, and its marker is not among them.

    Columns: run (the recording), seq (of the fetch), topic, partition, last_stable_offset, high_watermark, producer_id and first_offset (the last
    transaction that starts below the last stable offset, null if none is known), broken (true: the row is a fault; null: undecided, because entries
    are missing) and excess (`last_stable_offset` minus `first_offset`).
    """
    return _open_below_stable(
        tables,
        f"""
        SELECT run, seq, {NAMED}, partition, last_stable_offset, high_watermark, ready_ns AS at_ns FROM {{partitions}}
        WHERE api = 'Fetch' AND replica_id < 0 AND error = 0 AND last_stable_offset >= 0""",
    )


def stable_in_replicas(tables: Tables) -> DataFrame:
    """Check that the last stable offset that a replica recorded does not pass an open transaction.

    Returns one row per recorded change. Only the broker of this project records last stable offsets.

    Columns: run (the recording), seq (of the change), topic, partition, last_stable_offset, high_watermark, producer_id and first_offset (the last
    transaction that starts below the last stable offset, null if none is known), broken (true: the row is a fault; null: undecided, because entries
    are missing) and excess (`last_stable_offset` minus `first_offset`).
    """
    return _open_below_stable(
        tables, "SELECT run, seq, topic AS where_, partition, last_stable_offset, high_watermark, at_ns FROM {state}"
    )


# ---- epochs of producers -----------------------------------------------------------------------------------------------------


def epochs_in_logs(tables: Tables) -> DataFrame:
    """Check that the epoch of a producer never falls from batch to batch of a log: a newer epoch fences the older ones.

    Returns one row per batch that has an earlier batch of the same producer.

    Columns: run (the recording), seq (of a fetch with the batch), topic, partition, producer_id, base_offset, producer_epoch, before_epoch and
    before_offset (the epoch and base offset of the earlier batch), broken (true: the row is a fault) and excess (`before_epoch` minus
    `producer_epoch`).
    """
    return tables.sql(
        """
        SELECT run, seq, where_ AS topic, partition, producer_id, base_offset, producer_epoch, before.producer_epoch AS before_epoch,
               before.base_offset AS before_offset, producer_epoch < before.producer_epoch AS broken,
               CAST(before.producer_epoch - producer_epoch AS double) AS excess
        FROM (SELECT *, max(struct(producer_epoch, base_offset)) OVER (
                  PARTITION BY run, where_, partition, life, producer_id ORDER BY base_offset
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
              FROM {logs} WHERE producer_id >= 0)
        WHERE before IS NOT NULL
        """,
        logs=_logs(tables),
    )


def first_sequences(tables: Tables) -> DataFrame:
    """Check that the first batch of a producer with a newer epoch has sequence number 0. Returns one row per such batch.

    Columns: run (the recording), seq (of a fetch with the batch), topic, partition, producer_id, producer_epoch, base_offset, base_sequence, broken
    (true: the row is a fault) and excess (`base_sequence`).
    """
    return tables.sql(
        """
        WITH ordered AS (
            SELECT *, min(producer_epoch) OVER w AS lowest_epoch,
                   row_number() OVER (PARTITION BY run, where_, partition, life, stretch, producer_id, producer_epoch, control
                                      ORDER BY base_offset) = 1 AS is_first
            FROM {logs} WHERE producer_id >= 0
            WINDOW w AS (PARTITION BY run, where_, partition, life, stretch, producer_id ORDER BY base_offset)
        )
        SELECT run, seq, where_ AS topic, partition, producer_id, producer_epoch, base_offset, base_sequence, base_sequence <> 0 AS broken,
               CAST(base_sequence AS double) AS excess
        FROM ordered WHERE is_first AND NOT control AND lowest_epoch < producer_epoch
        """,
        logs=_logs(tables),
    )


def epochs_in_responses(tables: Tables) -> DataFrame:
    """Check that a coordinator never lowers the epoch of a producer id.

    The response to an InitProducerId without a producer id must have a higher epoch of the returned id than all earlier responses.
    Returns one row per response with a producer id that an earlier response contained, too.

    Columns: run (the recording), seq (of the request), transactional_id, producer_id, epoch (in the response), before_epoch (the highest earlier one)
    and before_seq (of the response that contained it), broken (true: the row is a fault; null: undecided, because entries are missing) and excess
    (number by which the epoch is too low).
    """
    rows = tables.sql("""
        WITH given AS (
            SELECT run, seq, api, transactional_id, returned_producer_id, returned_epoch, begun_ns, ready_ns,
                   returned_epoch - IF(api = 'InitProducerId' AND producer_id < 0, 1, 0) AS most
            FROM {transactions} WHERE error = 0 AND returned_producer_id >= 0
        ), points AS (
            SELECT *, begun_ns AS at_ns, 1 AS turn FROM given UNION ALL SELECT *, ready_ns, 0 FROM given
        )
        SELECT run, seq, transactional_id, returned_producer_id AS producer_id, returned_epoch AS epoch, before.epoch AS before_epoch,
               before.seq AS before_seq, most < before.epoch AS broken, CAST(before.epoch - most AS double) AS excess, before.at_ns AS before_ns,
               at_ns AS then_ns
        FROM (SELECT *, max(IF(turn = 0, struct(returned_epoch AS epoch, at_ns, seq), NULL)) OVER (
                  PARTITION BY run, returned_producer_id ORDER BY at_ns, turn) AS before FROM points)
        WHERE turn = 1 AND before IS NOT NULL
    """)
    return tables.undecided_if_missing(rows, "before_ns", "then_ns").drop("before_ns", "then_ns")


def fenced_requests(tables: Tables) -> DataFrame:
    """Check that no request of a producer is accepted after a coordinator returned a newer epoch of its producer id.

    Returns one row per accepted request (for Produce, per batch) that began after a response with any epoch of its producer id, and compares its
    epoch with the newest of these. Two kinds of requests are special:

    - Produce below version 11 is not checked: a partition leader learns of a newer epoch only from records or markers, and only brokers from 3.8 on
      ask the coordinator.
    - EndTxn is compared only with epochs from InitProducerId, because an EndTxn that raised the epoch may be repeated with the old one.

    Columns: run (the recording), seq (of the request), api, transactional_id, topic, partition, producer_id, producer_epoch, newer_epoch and
    newer_seq (of the response that returned it), broken (true: the row is a fault; null: undecided, because entries are missing) and excess
    (`newer_epoch` minus `producer_epoch`).
    """
    rows = tables.sql(f"""
        WITH requests AS (
            SELECT run, seq, api, transactional_id, topic, partition, producer_id, producer_epoch, begun_ns FROM {{transactions}}
            WHERE error = 0 AND producer_id >= 0 AND api IN ('AddPartitionsToTxn', 'AddOffsetsToTxn', 'TxnOffsetCommit', 'EndTxn')
            UNION ALL
            SELECT b.run, b.seq, b.api, r.transactional_id, coalesce(b.topic, b.topic_id), b.partition, b.producer_id, b.producer_epoch, b.begun_ns
            FROM {{batches}} b JOIN {{requests}} r ON r.run = b.run AND r.seq = b.seq
            WHERE b.api = 'Produce' AND b.transactional AND b.base_offset IS NOT NULL AND r.api_version >= {VERIFIED_PRODUCE}
        ), points AS (
            SELECT *, begun_ns AS at_ns, 1 AS turn, CAST(NULL AS int) AS epoch FROM requests
            UNION ALL
            SELECT run, seq, api, NULL, NULL, NULL, returned_producer_id, NULL, begun_ns, ready_ns, 0, returned_epoch
            FROM {{transactions}} WHERE error = 0 AND returned_producer_id >= 0
        ), known AS (
            SELECT *, max(IF(turn = 0, struct(epoch, at_ns, seq), NULL)) OVER p AS newest,
                   max(IF(turn = 0 AND api = 'InitProducerId', struct(epoch, at_ns, seq), NULL)) OVER p AS newest_begun
            FROM points WINDOW p AS (PARTITION BY run, producer_id ORDER BY at_ns, turn)
        ), fenced AS (
            SELECT *, IF(api = 'EndTxn', newest_begun, newest) AS fence FROM known WHERE turn = 1
        )
        SELECT run, seq, api, transactional_id, topic, partition, producer_id, producer_epoch, fence.epoch AS newer_epoch, fence.seq AS newer_seq,
               producer_epoch < fence.epoch AS broken, CAST(fence.epoch - producer_epoch AS double) AS excess, fence.at_ns AS fenced_ns,
               at_ns AS then_ns
        FROM fenced WHERE fence IS NOT NULL
    """)
    return tables.undecided_if_missing(rows, "fenced_ns", "then_ns").drop("fenced_ns", "then_ns")


# ---- markers -----------------------------------------------------------------------------------------------------------------


def markers(tables: Tables) -> DataFrame:
    """Check that each transaction has the marker that its EndTxn decided, on each partition to which it wrote.

    Returns one row per transaction and partition. Two transactions of a producer must have different markers. Partitions for which an admin wrote
    markers are left out.

    Columns: run (the recording), seq (of the EndTxn), transactional_id, topic, partition, producer_id, first_offset (of the transaction),
    marker_offset, decided (whether EndTxn committed), committed (whether the marker commits; null if unknown), broken (true: the row is a fault;
    null: undecided, because entries are missing) and excess (always 1).
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
        ends=_ends(tables),
    )
    return tables.without_truncations(rows, "written_ns", "seen_ns")


RULES = (
    Rule("11", "a read_committed fetch gets no record at or above the last stable offset", ERROR, below_stable),
    Rule("11-aborted", "a read_committed response lists each aborted transaction of which it has a batch", ERROR, aborted_listed),
    Rule("24", "no read_committed response lists a committed transaction as aborted", ERROR, committed_visible),
    Rule("25", "the last stable offset of a response never passes an open transaction", ERROR, stable_in_responses),
    Rule("25-moved", "the last stable offset of a replica never passes an open transaction", ERROR, stable_in_replicas),
    Rule("26", "the epoch of a producer never falls in a log", ERROR, epochs_in_logs),
    Rule("26-first", "the first batch of a producer's new epoch has sequence number 0", ERROR, first_sequences),
    Rule("26-given", "no epoch of a producer id falls in responses, and no two producers get the same one", ERROR, epochs_in_responses),
    Rule("27", "no request of a fenced producer epoch is accepted", ERROR, fenced_requests),
    Rule("28", "each transaction ends as its EndTxn said, on every partition to which it wrote", ERROR, markers),
)  # fmt: skip
