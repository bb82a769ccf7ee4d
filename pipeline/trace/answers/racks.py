"""Queries about racks: bytes that were fetched across racks, and the share that a replica in the client's rack could have served (KIP-392).

The racks of brokers come from the recorder or from responses. In-sync replicas are known only if the broker itself recorded the trace; the proxy
and packet captures do not show them.
"""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import Answer, Query

WHERE = """
    WITH racks AS (
        SELECT run, id AS broker, max_by(rack, at_ns) AS rack FROM (
            SELECT run, at_ns, listed_broker.id, listed_broker.rack FROM (
                SELECT run, at_ns, explode(from_json(get_json_object(facts, '$.brokers'), 'array<struct<id: int, rack: string>>')) AS listed_broker
                FROM {events} WHERE kind = 'meta')
            UNION ALL
            SELECT run, at_ns, try_cast(get_json_object(facts, '$.node') AS int), get_json_object(facts, '$.rack') FROM {events} WHERE kind = 'rack'
        ) GROUP BY run, id
    ), read AS (
        SELECT p.run, p.broker, coalesce(p.topic, p.topic_id) AS topic, p.partition, r.rack AS client_rack, r.client_id, sum(p.bytes) AS bytes
        FROM {partitions} p JOIN {requests} r ON r.run = p.run AND r.seq = p.seq
        WHERE p.api = 'Fetch' AND p.bytes > 0 AND coalesce(p.replica_id, -1) < 0 GROUP BY ALL
    ), placed AS (
        SELECT read.*, k.rack AS broker_rack FROM read LEFT JOIN racks k ON k.run = read.run AND k.broker = read.broker
    )"""

BYTES = f"""{WHERE}
    SELECT client_rack, broker_rack, topic, sum(bytes) AS bytes FROM placed GROUP BY 1, 2, 3 ORDER BY bytes DESC
"""

SAVING = f"""{WHERE}, replicas AS (
        SELECT run, topic, partition, collect_set(rack) AS rack_set FROM (
            SELECT run, topic, nth AS partition, explode(listed_partition.isr) AS broker FROM (
                SELECT run, get_json_object(facts, '$.topic') AS topic,
                       posexplode(from_json(get_json_object(facts, '$.partitions'), 'array<struct<isr: array<int>>>')) AS (nth, listed_partition)
                FROM {{events}} WHERE kind = 'topic' AND get_json_object(facts, '$.state') <> 'deleted'))
        JOIN racks USING (run, broker) GROUP BY run, topic, partition
    )
    SELECT client_rack, sum(bytes) AS bytes, sum(CASE WHEN client_rack = broker_rack THEN bytes ELSE 0 END) AS from_its_own_rack,
           sum(CASE WHEN client_rack <> broker_rack THEN bytes ELSE 0 END) AS across_racks,
           sum(CASE WHEN client_rack <> broker_rack AND array_contains(rack_set, client_rack) THEN bytes
                    WHEN rack_set IS NOT NULL OR client_rack = broker_rack THEN 0 END) AS avoidable_across_racks,
           concat_ws(', ', slice(sort_array(collect_set(client_id)), 1, 5)) AS clients
    FROM placed LEFT JOIN replicas USING (run, topic, partition) WHERE client_rack <> '' AND broker_rack IS NOT NULL
    GROUP BY client_rack ORDER BY across_racks DESC
"""

CLIENTS = f"""{WHERE}
    SELECT client_id, client_rack, CASE
             WHEN client_rack LIKE '${{{{env:%' THEN 'the client sends an unreplaced variable as its rack, such as ${{{{env:RACK}}}}'
             WHEN coalesce(client_rack, '') = '' THEN 'the client sends no rack'
             ELSE 'no broker is in the rack of the client' END AS reason, sum(bytes) AS bytes
    FROM placed p LEFT JOIN (SELECT DISTINCT rack AS known FROM racks WHERE rack <> '') k ON k.known = p.client_rack
    WHERE EXISTS (SELECT 1 FROM racks WHERE rack <> '') AND (coalesce(client_rack, '') = '' OR known IS NULL)
    GROUP BY client_id, client_rack ORDER BY bytes DESC
"""

ANSWER = Answer(
    "racks",
    "How many bytes were fetched across racks, and could a replica in the client's rack have served them?",
    (
        Query("bytes", "bytes of fetched records by rack of the client, rack of the broker and topic", BYTES),
        Query(
            "saving",
            "fetched bytes by rack of the client. avoidable_across_racks: bytes from another rack although a broker in the rack of the client had a "
            "replica that was in sync when the topic was created",
            SAVING,
        ),
        Query("clients", "clients that cannot fetch from a replica in their own rack, and why", CLIENTS),
    ),
)
