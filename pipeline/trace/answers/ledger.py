"""Queries about acknowledged records: whether they were fetched, stored twice, or skipped by a consumer, and the time until the first fetch."""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import FAMILY, Answer, Query

TOPIC = "coalesce(topic, topic_id)"

LIFE = "size(filter(coalesce(made, array()), at -> at <= ready_ns)) AS life"
"""SQL: a column `life` for a row about a topic: how often a topic with this name was created between the start of the recording and `ready_ns`.

The column distinguishes the records of a deleted topic from those of a new topic with the same name. It is computed from two columns of the row:
made (the times at which topics with this name were created) and ready_ns (the time of the Produce or Fetch response).
"""

BATCHES = f"""
    topics AS (
        SELECT run, get_json_object(facts, '$.topic') AS topic, at_ns, get_json_object(facts, '$.state') AS state,
               from_json(facts, 'configs map<string, string>').configs['cleanup.policy'] AS policy FROM {{events}} WHERE kind = 'topic'
    ), lives AS (SELECT run, topic, collect_list(at_ns) AS made FROM topics WHERE state = 'created' GROUP BY run, topic
    ), acked AS (
        SELECT run, {TOPIC} AS topic_, {LIFE}, partition, base_offset, min(last_offset) AS last_offset, min(count) AS count,
               min(ready_ns) AS acked_ns, min(producer_id) AS producer_id, min(producer_epoch) AS producer_epoch,
               min(base_sequence) AS base_sequence
        FROM {{batches}} LEFT JOIN lives USING (run, topic) WHERE api = 'Produce' AND base_offset IS NOT NULL GROUP BY ALL
    ), fetched AS (
        SELECT b.run, coalesce(b.topic, b.topic_id) AS topic_, size(filter(coalesce(made, array()), at -> at <= b.ready_ns)) AS life,
               b.partition, b.base_offset, min(b.ready_ns) AS read_ns, count(1) AS times
        FROM {{batches}} b JOIN {{requests}} r ON r.run = b.run AND r.seq = b.seq LEFT JOIN lives l ON l.run = b.run AND l.topic = b.topic
        WHERE b.api = 'Fetch' AND coalesce(r.replica_id, -1) < 0 GROUP BY ALL
    )"""
KEY = "run, topic_, life, partition"
ALL_TOPICS = "(all topics)"

PARTITIONS = f"""
    WITH {BATCHES}, twice AS (
        SELECT {KEY}, producer_id, producer_epoch, base_sequence, max(count) * (count(DISTINCT base_offset) - 1) AS records
        FROM acked WHERE producer_id >= 0 GROUP BY ALL HAVING count(DISTINCT base_offset) > 1
    ), passed AS (
        SELECT run, {TOPIC} AS topic_, {LIFE}, partition, requested_offset, base_offset, ready_ns
        FROM {{partitions}} LEFT JOIN lives USING (run, topic)
        WHERE api = 'Fetch' AND base_offset > requested_offset AND coalesce(replica_id, -1) < 0
    ), defaults AS (
        SELECT run, max(facts RLIKE '"log.cleanup.policy":"[a-z,]*compact') AS compacts FROM {{events}} WHERE kind = 'meta' GROUP BY run
    ), compacted AS (
        SELECT DISTINCT run, topic AS topic_ FROM topics LEFT JOIN defaults USING (run)
        WHERE coalesce(policy LIKE '%compact%', compacts)
    ), lost AS (
        SELECT a.run, a.topic_, a.life, a.partition, a.base_offset, max(a.count) AS records FROM acked a
        JOIN passed p ON p.run = a.run AND p.topic_ = a.topic_ AND p.life = a.life AND p.partition = a.partition AND p.ready_ns > a.acked_ns
                     AND a.base_offset >= p.requested_offset AND a.last_offset < p.base_offset
        LEFT ANTI JOIN fetched f USING ({KEY}, base_offset)
        LEFT ANTI JOIN compacted c USING (run, topic_)
        GROUP BY a.run, a.topic_, a.life, a.partition, a.base_offset
    ), of_partitions AS (
    SELECT a.topic_ AS topic, a.partition, count(1) AS batches, sum(a.count) AS acknowledged,
           sum(CASE WHEN f.base_offset IS NOT NULL THEN a.count ELSE 0 END) AS read,
           sum(CASE WHEN f.base_offset IS NULL AND l.base_offset IS NULL THEN a.count ELSE 0 END) AS unread,
           coalesce(sum(l.records), 0) AS lost, coalesce(max(t.records), 0) AS stored_twice, coalesce(max(f.times), 0) AS max_reads,
           round(percentile_approx(CASE WHEN read_ns >= 0 THEN greatest(read_ns - acked_ns, 0) END, 0.5, 1000) / 1e6, 3) AS p50_to_read_ms,
           round(percentile_approx(CASE WHEN read_ns >= 0 THEN greatest(read_ns - acked_ns, 0) END, 0.99, 1000) / 1e6, 3) AS p99_to_read_ms
    FROM acked a
    LEFT JOIN fetched f USING ({KEY}, base_offset)
    LEFT JOIN lost l USING ({KEY}, base_offset)
    LEFT JOIN (SELECT {KEY}, sum(records) AS records FROM twice GROUP BY ALL) t USING ({KEY})
    GROUP BY a.topic_, a.partition
    ), summed AS (
        SELECT topic AS name, partition AS index, grouping(topic) AS every_topic, grouping(partition) AS every_partition, count(1) AS partitions,
               sum(batches) AS batches, sum(acknowledged) AS acknowledged, sum(read) AS read, sum(unread) AS unread, sum(lost) AS lost,
               sum(stored_twice) AS stored_twice, max(max_reads) AS max_reads, max(p50_to_read_ms) AS p50, max(p99_to_read_ms) AS p99
        FROM of_partitions GROUP BY GROUPING SETS ((topic, partition), (topic), ())
    )
    SELECT IF(every_topic = 1, '{ALL_TOPICS}', name) AS topic, index AS partition, batches, acknowledged, read, unread, lost, stored_twice, max_reads,
           IF(every_partition = 0, p50, NULL) AS p50_to_read_ms, IF(every_partition = 0, p99, NULL) AS p99_to_read_ms
    FROM summed WHERE every_partition = 0 OR partitions > 1
    ORDER BY every_topic DESC, every_partition DESC, lost DESC, stored_twice DESC, acknowledged DESC, topic, partition
"""

ONLY_READ = f"""
    WITH stored AS (
        SELECT DISTINCT run, {TOPIC} AS topic_, partition FROM {{batches}} WHERE api = 'Produce' AND base_offset IS NOT NULL
    ), read AS (
        SELECT run, {TOPIC} AS topic_, partition, records, bytes, base_offset, next_offset, high_watermark FROM {{partitions}}
        WHERE api = 'Fetch' AND records > 0 AND coalesce(replica_id, -1) < 0
    )
    SELECT topic_ AS topic, partition, count(1) AS fetches, sum(records) AS records, sum(bytes) AS bytes, min(base_offset) AS from_offset,
           max(next_offset) AS to_offset, max(high_watermark) AS high_watermark
    FROM read LEFT ANTI JOIN stored USING (run, topic_, partition) GROUP BY topic_, partition ORDER BY bytes DESC, topic, partition
"""

OFFSETS = f"""
    WITH seen AS (
        SELECT p.*, {TOPIC} AS topic_, r.client_id FROM {{partitions}} p JOIN {{requests}} r ON r.run = p.run AND r.seq = p.seq
        WHERE p.api IN ('Produce', 'Fetch') AND p.error = 0
    ), busiest AS (
        SELECT topic_, partition FROM seen GROUP BY topic_, partition
        ORDER BY max(CASE WHEN api = 'Produce' AND base_offset IS NOT NULL THEN 1 ELSE 0 END) + max(CASE WHEN api = 'Fetch' THEN 1 ELSE 0 END) DESC,
                 count(1) DESC, topic_, partition LIMIT 4
    ), spans AS (
        SELECT topic_, partition, min(ready_ns) AS begins, greatest((max(ready_ns) - min(ready_ns)) / 200, 1) AS width
        FROM seen JOIN busiest USING (topic_, partition) GROUP BY topic_, partition
    ), lines AS (
        SELECT topic_, partition, ready_ns, 'produced' AS line, next_offset AS at FROM seen WHERE api = 'Produce' AND next_offset IS NOT NULL
        UNION ALL SELECT topic_, partition, ready_ns, 'high watermark', high_watermark FROM seen WHERE api = 'Fetch' AND high_watermark >= 0
        UNION ALL SELECT topic_, partition, ready_ns, 'last stable offset', last_stable_offset FROM seen
                  WHERE api = 'Fetch' AND last_stable_offset >= 0 AND last_stable_offset < high_watermark
        UNION ALL SELECT topic_, partition, ready_ns, concat('read by ', {FAMILY}), coalesce(next_offset, requested_offset)
                  FROM seen WHERE api = 'Fetch' AND coalesce(replica_id, -1) < 0 AND requested_offset IS NOT NULL
    )
    SELECT topic_ AS topic, partition, line, round(CAST((ready_ns - begins) / width AS bigint) * width / 1e9, 3) AS at_s, max(at) AS offset
    FROM lines JOIN spans USING (topic_, partition)
    GROUP BY topic_, partition, line, CAST((ready_ns - begins) / width AS bigint), width ORDER BY topic, partition, line, at_s
"""

ANSWER = Answer(
    "ledger",
    "Was every acknowledged record fetched, exactly once, and how soon?",
    (
        Query(
            "partitions",
            "acknowledged records of each partition. read: fetched in this trace; unread: not fetched; lost: skipped by a consumer (not counted for "
            "compacted topics); stored_twice: stored again at another offset. Rows without a partition are totals of a topic or of all topics, "
            "including partitions that are not listed",
            PARTITIONS,
        ),
        Query("only-read", "partitions that were fetched but not written in this trace", ONLY_READ),
        Query(
            "offsets",
            "offsets over time in the four busiest partitions: the end of the produced records, the high watermark, the last stable offset, and the "
            'next offset of each consumer (the lines whose names begin with "read by"). at_s: seconds since the first response about the partition',
            OFFSETS,
        ),
    ),
)
