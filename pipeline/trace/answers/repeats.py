"""Queries about repeated requests: batches that producers sent again with the same sequence number, and fetches from the same offset."""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import FAMILY, Answer, Query

NAMES = "names AS (SELECT run, conn, min(client_id) AS client_id FROM {requests} GROUP BY run, conn)"
"""SQL: a CTE `names` with the client id of each connection, in the columns run, conn and client_id.

A join with this small CTE is cheaper than a join with the large table of requests.
"""

PRODUCED = f"""
    WITH {NAMES}, sent AS (
        SELECT run, coalesce(topic, topic_id) AS topic, partition, producer_id, producer_epoch, base_sequence, min(conn) AS conn,
               count(1) AS times, min(base_offset) <> max(base_offset) AS stored_twice
        FROM {{batches}} WHERE api = 'Produce' AND producer_id >= 0 AND base_sequence >= 0
        GROUP BY run, coalesce(topic, topic_id), partition, producer_id, producer_epoch, base_sequence HAVING count(1) > 1
    )
    SELECT /*+ BROADCAST(names) */ {FAMILY} AS client, topic, partition, count(1) AS batches, sum(times - 1) AS sent_again,
           max(times) AS max_times, count_if(stored_twice) AS stored_twice
    FROM sent JOIN names USING (run, conn) GROUP BY 1, 2, 3 ORDER BY sent_again DESC, client, topic, partition
"""

FETCHED = f"""
    WITH {NAMES}, fetched AS (
        SELECT /*+ BROADCAST(names) */ run, client_id, coalesce(topic, topic_id) AS topic, partition, requested_offset, count(1) AS times,
               sum(bytes) AS bytes, max(bytes) AS once_bytes
        FROM {{partitions}} JOIN names USING (run, conn)
        WHERE api = 'Fetch' AND requested_offset IS NOT NULL AND records > 0 AND coalesce(replica_id, -1) < 0
        GROUP BY run, client_id, coalesce(topic, topic_id), partition, requested_offset HAVING count(1) > 1
    )
    SELECT client_id, topic, partition, count(1) AS offsets, sum(times - 1) AS fetched_again, max(times) AS max_times,
           sum(bytes - once_bytes) AS bytes_again
    FROM fetched GROUP BY client_id, topic, partition ORDER BY fetched_again DESC, client_id, topic, partition
"""

ANSWER = Answer(
    "repeats",
    "Which batches were sent again, and which offsets were fetched again?",
    (
        Query(
            "produced",
            "batches that a producer sent more than once, with the same producer id and sequence number. A broker must store such a batch only "
            "once; stored_twice: the number of batches for which the responses show two offsets",
            PRODUCED,
        ),
        Query(
            "fetched",
            "offsets from which a client id fetched records more than once, for example because a response was lost or because several consumers "
            "share the client id",
            FETCHED,
        ),
    ),
)
