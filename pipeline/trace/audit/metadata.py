"""Rules of topic ids and preferred read replicas in responses (KIP-516, KIP-392)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ERROR, NAMED, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RACK_AWARE = "%RackAwareReplicaSelector"


def preferred_replicas(tables: Tables) -> DataFrame:
    """Check that a fetch response names a preferred read replica only if the replica is suitable. Returns one row per preferred replica.

    - The replica must be in the ISR, and must not be on the broker that sent the response. If this broker has Kafka's rack-aware selector, the
      replica must also be in the client's rack.
    - Only the leader may name a replica, only in a response without records, and only if the client has a rack and its fetch offset is not below the
      log start.
    - Racks come from Metadata responses. Leader and ISR are known only if the recorder records their changes. Leader and ISR are not checked if
      either of them changed between the start of the fetch and the response.

    Columns:

    - run (the recording), seq (of the fetch), topic, partition, client_id, rack (of the client), requested_offset: the fetch.
    - broker (the sender), log_start, bytes (of the records): the response.
    - leader, isr: leader and in-sync replicas of the partition.
    - preferred_replica, node_rack: the preferred replica and its rack.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: 1, because a fault of this kind has no size.
    """
    rows = tables.sql(f"""
        WITH reported AS (
            SELECT p.run, p.seq, p.broker, {NAMED}, p.partition, p.preferred_replica, p.bytes, p.requested_offset, p.log_start,
                   p.begun_ns, p.ready_ns, r.rack, r.client_id
            FROM {{partitions}} p JOIN {{requests}} r ON r.run = p.run AND r.seq = p.seq
            WHERE p.api = 'Fetch' AND p.preferred_replica >= 0 AND p.error = 0
        ), racks AS (
            SELECT run, CAST(get_json_object(facts, '$.node') AS int) AS node, max_by(get_json_object(facts, '$.rack'), at_ns) AS node_rack
            FROM {{events}} WHERE kind = 'rack' GROUP BY run, get_json_object(facts, '$.node')
        ), joined AS (
            SELECT /*+ BROADCAST(racks), BROADCAST(o), BROADCAST(s) */ reported.*, node_rack, s.selector,
                   filter(states, x -> x.at_ns < begun_ns) AS before, filter(states, x -> x.at_ns BETWEEN begun_ns AND ready_ns) AS during
            FROM reported LEFT JOIN racks ON racks.run = reported.run AND racks.node = reported.preferred_replica
            LEFT JOIN {{states_of}} o ON o.run = reported.run AND o.where_ = reported.where_ AND o.partition = reported.partition
            LEFT JOIN {{settings}} s ON s.run = reported.run AND s.broker = reported.broker
        ), known AS (
            SELECT *, bytes > 0 OR preferred_replica = broker OR coalesce(rack, '') = '' OR coalesce(requested_offset < log_start, false) AS alone,
                   try_element_at(filter(before, x -> x.isr IS NOT NULL), -1).isr AS isr_before,
                   try_element_at(filter(before, x -> x.leader IS NOT NULL), -1).leader AS leader_before
            FROM joined
        )
        SELECT run, seq, where_ AS topic, partition, client_id, rack, broker, leader_before AS leader, preferred_replica, node_rack,
               isr_before AS isr, requested_offset, log_start, bytes,
               alone OR coalesce(rack <> node_rack AND coalesce(selector, '') LIKE '{RACK_AWARE}', false)
                   OR coalesce(size(during) = 0 AND NOT array_contains(isr_before, preferred_replica), false)
                   OR coalesce(size(during) = 0 AND leader_before <> broker, false) AS broken,
               CAST(1 AS double) AS excess, IF(alone, NULL, ready_ns) AS known_ns
        FROM known
    """)
    return tables.undecided_if_missing_before(rows, "known_ns").drop("known_ns")


def topic_ids(tables: Tables) -> DataFrame:
    """Check that each topic name keeps its topic id in the responses of a broker, and that each id keeps its name.

    Returns one row each time that a broker reports a topic name for the first time, or reports it with a new id. A new id of a name is checked only
    if the recorder also records deletions of topics.

    Columns:

    - run (the recording), seq (of the request), broker, topic, topic_id: the name and the id in a response of the broker.
    - before_id: the id with which the broker reported the name before.
    - first_name: the name with which any broker first reported `topic_id`.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: 1, because a fault of this kind has no size.
    """
    rows = tables.sql("""
        WITH named AS (
            SELECT run, seq, broker, at_ns, CAST(get_json_object(facts, '$.begun_ns') AS bigint) AS begun_ns,
                   get_json_object(facts, '$.topic') AS topic, get_json_object(facts, '$.topic_id') AS topic_id
            FROM {events} WHERE kind = 'named'
        ), deleted AS (
            SELECT run, get_json_object(facts, '$.topic') AS topic, collect_list(at_ns) AS deleted
            FROM {events} WHERE kind = 'topic' AND get_json_object(facts, '$.state') = 'deleted'
            GROUP BY run, get_json_object(facts, '$.topic')
        ), reported AS (SELECT DISTINCT run, true AS has_topic_events FROM {events} WHERE kind = 'topic'
        ), paired AS (
            SELECT *, lag(topic_id) OVER n AS before_id, lag(begun_ns) OVER n AS before_ns,
                   first(topic) OVER (PARTITION BY run, topic_id ORDER BY at_ns, seq) AS first_name
            FROM named WINDOW n AS (PARTITION BY run, broker, topic ORDER BY at_ns, seq)
        )
        SELECT /*+ BROADCAST(d), BROADCAST(t) */ p.run, p.seq, p.broker, p.topic, p.topic_id, before_id, first_name,
               topic <> first_name OR coalesce(has_topic_events AND before_id <> topic_id
                   AND NOT exists(coalesce(deleted, array()), at -> at BETWEEN before_ns AND at_ns), false) AS broken,
               CAST(1 AS double) AS excess, IF(topic <> first_name, NULL, before_ns) AS before_ns, at_ns
        FROM paired p LEFT JOIN deleted d USING (run, topic) LEFT JOIN reported t USING (run)
    """)
    return tables.undecided_if_missing(rows, "before_ns", "at_ns").drop("before_ns", "at_ns")


RULES = (
    Rule("14", "a fetch response with a preferred replica has no records; the replica is in sync, in the client's rack", ERROR, preferred_replicas),
    Rule("19", "a topic keeps its id, and an id its topic, until the topic is deleted", ERROR, topic_ids),
)  # fmt: skip
