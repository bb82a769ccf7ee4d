"""Queries about groups: the coordinator, generation or epoch, and members of each group, as requests and responses show them."""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import Answer, Query

STARTS = "starts AS (SELECT run, min(received_ns) AS starts_ns FROM {requests} GROUP BY run)"
"""SQL: a CTE with the time of the first request of each run (recording). Answers show times as seconds since that request."""

LEAVES = "(api = 'LeaveGroup' OR api = 'ConsumerGroupHeartbeat' AND requested_epoch < 0)"
"""SQL: true for a request with which a member leaves its group."""

SEEN = f"""
    {STARTS}, requests_of_members AS (
        SELECT g.*, r.client_id, {LEAVES} AND coalesce(error, 0) = 0 OR coalesce(g.error, 0) IN (25, 82, 110) AS ends
        FROM (SELECT * EXCEPT (hour) FROM {{groups}} WHERE member_id IS NOT NULL) g
        JOIN (SELECT run, seq, client_id FROM {{requests}}) r USING (run, seq)
    ), newest AS (
        SELECT run, group_id, max(returned_epoch) AS newest_epoch, min_by(ready_ns, struct(-returned_epoch, ready_ns)) AS newest_ns
        FROM requests_of_members WHERE error = 0 AND returned_epoch > 0 GROUP BY run, group_id
    ), summed AS (
        SELECT run, group_id, member_id, max(instance_id) AS instance_id, max_by(client_id, ready_ns) AS client_id,
               max_by(coalesce(returned_epoch, requested_epoch), ready_ns) FILTER (WHERE coalesce(returned_epoch, requested_epoch) >= 0) AS epoch,
               max_by(assigned, ready_ns) FILTER (WHERE assigned IS NOT NULL) AS assigned, max_by(ends, struct(ready_ns, seq)) AS has_left,
               max(api = 'ConsumerGroupHeartbeat') AS is_consumer, max_by(assignor, ready_ns) FILTER (WHERE assignor IS NOT NULL) AS assignor,
               max_by(broker, ready_ns) AS broker, min(begun_ns) AS first_ns, max(ready_ns) AS last_ns
        FROM requests_of_members GROUP BY run, group_id, member_id
    ), members AS (
        SELECT *, CASE
            WHEN has_left THEN 'left or fenced'
            WHEN first_ns < max(first_ns) OVER (PARTITION BY run, group_id, coalesce(instance_id, member_id)) THEN 'replaced'
            WHEN epoch < newest_epoch AND last_ns < newest_ns THEN 'silent'
            ELSE 'member' END AS status
        FROM summed LEFT JOIN newest USING (run, group_id)
    )"""

GROUPS = f"""
    WITH {SEEN}, recorded AS (
        SELECT run, get_json_object(facts, '$.group') AS group_id, max_by(get_json_object(facts, '$.state'), seq) AS state
        FROM {{events}} WHERE kind = 'group' GROUP BY run, get_json_object(facts, '$.group')
    )
    SELECT group_id, max_by(broker, last_ns) AS coordinator,
           CASE WHEN min(is_consumer) THEN 'consumer' WHEN max(is_consumer) THEN 'both' ELSE 'classic' END AS protocol,
           max_by(assignor, last_ns) AS assignor, any_value(newest_epoch) AS generation_or_epoch, count_if(status = 'member') AS members,
           count(1) AS members_ever, any_value(state) AS recorded_state, round((min(first_ns) - any_value(starts_ns)) / 1e9, 3) AS first_seen_s,
           round((max(last_ns) - any_value(starts_ns)) / 1e9, 3) AS last_seen_s
    FROM members JOIN starts USING (run) LEFT JOIN recorded USING (run, group_id) GROUP BY run, group_id ORDER BY group_id
"""

MEMBERS = f"""
    WITH {SEEN}, listed AS (
        SELECT m.run, m.group_id, m.member_id,
               concat_ws('; ', sort_array(collect_list(concat(coalesce(n.name, m.topic), ': ', array_join(m.indexes, ', '))))) AS partitions
        FROM (SELECT run, group_id, member_id, topic, indexes FROM members
              LATERAL VIEW explode(from_json(assigned, 'map<string, array<int>>')) AS topic, indexes WHERE status = 'member') m
        LEFT JOIN {{topic_names}} n ON n.run = m.run AND n.topic_id = m.topic
        GROUP BY m.run, m.group_id, m.member_id
    )
    SELECT group_id, member_id, client_id, instance_id, IF(is_consumer, 'consumer', 'classic') AS protocol, epoch AS generation_or_epoch,
           status, partitions, round((first_ns - starts_ns) / 1e9, 3) AS first_seen_s,
           round((last_ns - starts_ns) / 1e9, 3) AS last_seen_s
    FROM members JOIN starts USING (run) LEFT JOIN listed USING (run, group_id, member_id)
    ORDER BY group_id, status <> 'member', first_ns, member_id
"""

ANSWER = Answer(
    "groups",
    "Which coordinator, generation or epoch, and members does each group have?",
    (
        Query(
            "groups",
            "each group with its coordinator, its last generation or epoch, and the number of its members at the end; recorded_state is known only "
            "if a broker of this project recorded the trace",
            GROUPS,
        ),
        Query(
            "members",
            "each member with its client, its last generation or epoch and, if it is still a member at the end, its partitions. silent: it sent "
            "nothing after the group had a newer generation or epoch; replaced: a newer member has the same instance id",
            MEMBERS,
        ),
    ),
)
