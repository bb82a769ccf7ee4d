"""Queries about Spark's Kafka source: its cost in requests and bytes for each Spark query, and the options that change the cost.

Spark's consumers are recognised by their client ids (`consumer-<group>-executor-<n>`); queries that set `kafka.client.id` are not included.
"""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import WHOLE, Answer, Query

CLIENT = "client_id RLIKE '-executor-[0-9]+$'"
NAME = (
    "regexp_replace(regexp_extract(client_id, '^(?:consumer-)?(.*)-executor-[0-9]+$', 1), "
    "'(spark-kafka-[a-z]+)-([0-9a-f]{{8}})[-0-9a-f]*', '$1-$2')"
)

QUERIES = f"""
    WITH mine AS (SELECT *, {NAME} AS query FROM {{requests}} WHERE {CLIENT}),
    carried AS (
        SELECT m.query, sum(b.count) AS records, sum(b.bytes) AS bytes,
               sum(b.bytes) - sum(CASE WHEN nth = 1 THEN b.bytes ELSE 0 END) AS bytes_again
        FROM (SELECT b.*, m.query, row_number() OVER (PARTITION BY m.query, b.run, coalesce(b.topic, b.topic_id), b.partition, b.base_offset
                                                      ORDER BY b.seq) AS nth
              FROM {{batches}} b JOIN mine m ON m.run = b.run AND m.seq = b.seq WHERE b.api = 'Fetch' AND NOT b.control) b
        JOIN (SELECT DISTINCT query FROM mine) m ON m.query = b.query GROUP BY m.query
    ), counted AS (
        SELECT query, count(DISTINCT client_id) AS consumers, count(DISTINCT run, conn) AS connections, count(1) AS requests,
               count_if(api = 'Fetch' AND has_response) AS fetches, count_if(api = 'ListOffsets') AS list_offsets,
               count_if(api = 'Fetch' AND records_bytes = 0 AND session_epoch >= 0 AND {WHOLE}) AS empty_fetches,
               max(max_bytes) AS fetch_max_bytes, max(CASE WHEN api = 'Fetch' THEN records_bytes END) AS largest_fetch_bytes,
               sum(coalesce(applied_throttle_ms, throttle_ms, 0)) AS throttled_ms,
               max(CASE WHEN rack LIKE '${{{{env:%' THEN rack END) AS literal_rack
        FROM mine GROUP BY query
    ), opened AS (
        SELECT query, sum(ms) AS open_ms FROM (
            SELECT query, run, conn, greatest((max(ready_ns) - min(received_ns)) / 1e6, sum(coalesce(applied_throttle_ms, throttle_ms, 0))) AS ms
            FROM mine GROUP BY query, run, conn) GROUP BY query
    )
    SELECT counted.query, consumers, connections, fetches, list_offsets, requests, coalesce(c.records, 0) AS records,
           round(1000 * requests / nullif(c.records, 0), 1) AS requests_per_1000_records,
           round(list_offsets / nullif(fetches, 0), 1) AS list_offsets_per_fetch,
           CAST(2 * c.records / nullif(list_offsets, 0) AS bigint) AS records_per_poll,
           CAST(c.bytes / nullif(fetches, 0) AS bigint) AS bytes_per_fetch,
           largest_fetch_bytes, fetch_max_bytes, empty_fetches, c.bytes_again,
           round(100 * throttled_ms / nullif(open_ms, 0), 1) AS percent_throttled,
           throttled_ms, literal_rack
    FROM counted JOIN opened o ON o.query = counted.query LEFT JOIN carried c ON c.query = counted.query ORDER BY requests DESC
"""

ADVICE = f"""
    WITH queries AS ({QUERIES}), drivers AS (
        SELECT count(1) AS requests, greatest((max(ready_ns) - min(received_ns)) / 1e9, 0.001) AS seconds FROM {{requests}}
        WHERE client_id RLIKE '^adminclient-[0-9]+$' AND EXISTS (SELECT 1 FROM queries)
    )
    SELECT query, 'two ListOffsets follow each poll of at most 500 records' AS finding,
           concat(list_offsets, ' ListOffsets, ', fetches, ' Fetch') AS measured, 'kafka.max.poll.records' AS option,
           'set it to 5000 or more to save nine of ten round trips' AS advice
    FROM queries WHERE list_offsets_per_fetch > 2.5 AND records > 1000
    UNION ALL
    SELECT query, 'fetches return much less than they may', concat(bytes_per_fetch, ' bytes per fetch of ', fetch_max_bytes, ' allowed'),
           'kafka.fetch.min.bytes', 'raise it together with kafka.fetch.max.wait.ms, if a delay of a second is acceptable'
    FROM queries WHERE fetches > 20 AND records > 0 AND bytes_per_fetch < 16384
    UNION ALL
    SELECT query, 'many consumers are created', concat(consumers, ' consumers, ', connections, ' connections'),
           'spark.kafka.consumer.cache.capacity', 'raise it above the number of partitions that one executor reads'
    FROM queries WHERE consumers > 64
    UNION ALL
    SELECT query, 'the same records were fetched more than once', concat(bytes_again, ' bytes again'), 'minPartitions',
           'a range that splits a batch fetches all of it; lower it, or look for repeated tasks'
    FROM queries WHERE bytes_again > 0
    UNION ALL
    SELECT query, 'the query is throttled by a quota', concat(percent_throttled, ' % of its time'), 'kafka.client.id',
           'set it, so that the query has a quota of its own; maxOffsetsPerTrigger limits records, not bytes'
    FROM queries WHERE throttled_ms > 0
    UNION ALL
    SELECT query, 'the client sends an unreplaced variable as its rack', literal_rack, 'kafka.config.providers',
           'set it to env, kafka.config.providers.env.class to org.apache.kafka.common.config.provider.EnvVarConfigProvider, '
           || 'and the variable on every executor'
    FROM queries WHERE literal_rack IS NOT NULL
    UNION ALL
    SELECT '(driver)', 'an idle query requests offsets all the time', concat(CAST(requests / seconds AS bigint), ' requests per second'),
           'trigger', 'set processingTime: the default requests them every 10 ms'
    FROM drivers WHERE requests > 1000 AND requests / seconds > 50
"""

ANSWER = Answer(
    "spark",
    "What do Spark's queries cost the broker, and which options change that?",
    (
        Query(
            "queries",
            "requests and bytes of the Kafka consumers of each Spark query; records: all fetched records, including those that the query discards",
            QUERIES,
        ),
        Query("advice", "unusual traffic of Spark queries, and which option to set", ADVICE),
    ),
)
