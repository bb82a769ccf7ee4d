"""Rules of producer epochs: in logs, in responses of the coordinator, and in the requests that are accepted (KIP-98, KIP-890).

A newer epoch of a producer id fences the older epochs: a broker accepts no more requests with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.consumed_batches import logs
from kafkaproto.pipeline.trace.audit.rule import ERROR, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERIFIED_PRODUCE = 11
"""The first Produce version for which a broker asks the transaction coordinator whether the partition is in the transaction (3.8, KIP-890)."""


def epochs_in_logs(tables: Tables) -> DataFrame:
    """Check that the epoch of a producer never falls from batch to batch of a log: a newer epoch fences the older epochs.

    Returns one row per batch that has an earlier batch of the same producer.

    Columns:

    - run (the recording), seq (of a fetch with the batch), topic, partition, producer_id, base_offset, producer_epoch: the batch.
    - before_epoch, before_offset: epoch and base offset of the earlier batch with the highest epoch.
    - broken: true if the row is a fault.
    - excess: `before_epoch` minus `producer_epoch`.
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
        logs=logs(tables),
    )


def first_sequences(tables: Tables) -> DataFrame:
    """Check that the first batch after a rise of a producer's epoch has sequence number 0. Returns one row per such batch.

    A batch is checked only if the trace has a batch with a lower epoch of the same producer before it, and no offset between them is missing.

    Columns:

    - run (the recording), seq (of a fetch with the batch), topic, partition, producer_id, producer_epoch, base_offset, base_sequence: the batch.
    - broken: true if the row is a fault.
    - excess: how far `base_sequence` is above 0.
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
        logs=logs(tables),
    )


def epochs_in_responses(tables: Tables) -> DataFrame:
    """Check that a coordinator never lowers the epoch of a producer id.

    If an InitProducerId request has no producer id, the epoch in its response must be higher than in all earlier responses with the same producer id.
    Returns one row per response with a producer id that an earlier response contained, too.

    Columns:

    - run (the recording), seq (of the request), transactional_id, producer_id, epoch: the response.
    - before_epoch: the highest epoch in earlier responses. before_seq: `seq` of the request whose response had this epoch.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: by how much `epoch` is too low.
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

    Returns one row per accepted request of a transaction (for Produce: per transactional batch), if a coordinator had returned an epoch of the
    producer id before. The row compares the epoch in the request with the newest epoch that was returned before. Two kinds of requests are special:

    - Produce below version 11 is not checked: a partition leader learns of a newer epoch only from records or markers, and only brokers from 3.8 on
      ask the coordinator.
    - EndTxn is compared only with epochs from InitProducerId, because an EndTxn that raised the epoch may be repeated with the old epoch.

    Columns:

    - run (the recording), seq (of the request), api, transactional_id, topic, partition, producer_id, producer_epoch: the request.
    - newer_epoch: the newest epoch that was returned before. newer_seq: `seq` of the request whose response had this epoch.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: `newer_epoch` minus `producer_epoch`.
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


RULES = (
    Rule("26", "the epoch of a producer id never decreases within a log", ERROR, epochs_in_logs),
    Rule("26-first", "the first batch of a producer's new epoch has sequence number 0", ERROR, first_sequences),
    Rule("26-responses", "no response gives a producer id a lower epoch than an earlier response did", ERROR, epochs_in_responses),
    Rule("27", "no request of a fenced producer epoch is accepted", ERROR, fenced_requests),
)  # fmt: skip
