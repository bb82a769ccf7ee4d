"""The batches that consumers received, for the audit rules of transactions and of producer epochs.

A batch that several Fetch responses contain is one row. Only batches of magic 2 have a producer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def logs(tables: Tables) -> DataFrame:
    """Return the batches of magic 2 that consumers received, each once, even if several responses contain it.

    Columns:

    - run (the recording), where_ (topic name or id), partition: the partition.
    - base_offset, last_offset, producer_id, producer_epoch, base_sequence, transactional, control: the batch.
    - committed: whether a marker commits; null for other batches.
    - seq: sequence number of the first fetch with the batch. seen_ns: time of the last response with the batch.
    - life: equal for two batches of a partition if they are from the same log. It changes when a topic is created again or a log is truncated.
    - stretch: equal for two batches with the same `life` if no offset between them is missing, so that every marker between them is known. An offset
      is missing if it was not fetched, or was removed by compaction.
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


def ends(tables: Tables) -> DataFrame:
    """Return the transactional batches that consumers received, each with the marker that ends its transaction.

    Columns:

    - run (the recording), where_ (topic name or id), partition, producer_id, producer_epoch, base_offset: the batch.
    - seq: sequence number of the first fetch with the batch. seen_ns: time of the last response with the batch.
    - life: equal for batches of the same log. stretch: equal for batches without missing offsets between them.
    - marker_offset: offset of the marker. It is null if the trace has no marker after the batch, or if the trace lacks an offset between the batch
      and the marker, because an earlier marker may be there.
    - committed: whether the marker commits. It is null if `marker_offset` is null, and in traces before format version 5.
    - before_offset: offset of the producer's last marker before the batch, null if it is unknown.
    - seen_end: the trace has all offsets from the batch up to this offset, exclusive.
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
        logs=logs(tables),
    )
