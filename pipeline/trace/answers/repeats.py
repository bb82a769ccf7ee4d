"""What was sent or asked for again: batches of producers with sequence numbers, and fetches from the same offset."""

from __future__ import annotations

from pipeline.trace.answers.answer import FAMILY, Answer, Query

PRODUCED = f"""
    WITH sent AS (
        SELECT b.run, coalesce(b.topic, b.topic_id) AS topic, b.partition, producer_id, producer_epoch, base_sequence,
               min({FAMILY}) AS client, count(DISTINCT b.seq) AS times, count(DISTINCT b.base_offset) AS offsets
        FROM batches b JOIN requests r ON r.run = b.run AND r.seq = b.seq
        WHERE b.api = 'Produce' AND producer_id >= 0 AND base_sequence >= 0
        GROUP BY b.run, coalesce(b.topic, b.topic_id), b.partition, producer_id, producer_epoch, base_sequence
        HAVING count(DISTINCT b.seq) > 1
    )
    SELECT client, topic, partition, count(1) AS batches, sum(times - 1) AS sent_again, max(times) AS most_times,
           count_if(offsets > 1) AS stored_twice
    FROM sent GROUP BY client, topic, partition ORDER BY sent_again DESC, client, topic, partition
"""

FETCHED = """
    WITH asked AS (
        SELECT p.run, r.client_id, coalesce(p.topic, p.topic_id) AS topic, p.partition, asked_offset, count(1) AS times, sum(p.bytes) AS bytes,
               max(p.bytes) AS once_bytes
        FROM partitions p JOIN requests r ON r.run = p.run AND r.seq = p.seq
        WHERE p.api = 'Fetch' AND asked_offset IS NOT NULL AND p.records > 0 AND coalesce(p.replica_id, -1) < 0
        GROUP BY p.run, r.client_id, coalesce(p.topic, p.topic_id), p.partition, asked_offset HAVING count(1) > 1
    )
    SELECT client_id, topic, partition, count(1) AS offsets, sum(times - 1) AS asked_again, max(times) AS most_times,
           sum(bytes - once_bytes) AS bytes_again
    FROM asked GROUP BY client_id, topic, partition ORDER BY asked_again DESC, client_id, topic, partition
"""

ANSWER = Answer(
    "repeats",
    "What was sent or asked for again?",
    (
        Query(
            "produced",
            "batches that came more than once with one producer's sequence number: a broker stores them once, and answers each time",
            PRODUCED,
        ),
        Query(
            "fetched",
            "offsets from which one client-id got records more than once: an answer that was lost, or several consumers of that name",
            FETCHED,
        ),
    ),
)
