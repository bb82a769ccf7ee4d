"""Queries about rebalances: when each group got a new generation or epoch, how long that took, and why."""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import Answer, Query
from kafkaproto.pipeline.trace.answers.groups import LEAVES, STARTS

REBALANCES = f"""
    WITH {STARTS}, given AS (
        SELECT run, group_id, member_id, returned_epoch AS epoch, api, begun_ns, ready_ns, reason, subscribed, requested_epoch,
               lag(subscribed) OVER (PARTITION BY run, group_id, member_id ORDER BY ready_ns) AS subscribed_before,
               row_number() OVER (PARTITION BY run, group_id, member_id ORDER BY ready_ns) = 1
                   OR api = 'ConsumerGroupHeartbeat' AND requested_epoch = 0 AS is_new
        FROM {{groups}}
        WHERE error = 0 AND returned_epoch > 0 AND member_id IS NOT NULL AND api IN ('JoinGroup', 'ConsumerGroupHeartbeat')
    ), begun AS (
        SELECT run, group_id, epoch, min(IF(api = 'JoinGroup', begun_ns, ready_ns)) AS begins_ns, min(ready_ns) AS given_ns,
               collect_set(member_id) AS members
        FROM given GROUP BY run, group_id, epoch
    ), reached AS (
        SELECT run, group_id, epoch, max(first_ns) AS ends_ns FROM (
            SELECT g.run, g.group_id, g.returned_epoch AS epoch, g.member_id, min(g.ready_ns) AS first_ns
            FROM {{groups}} g JOIN begun b ON b.run = g.run AND b.group_id = g.group_id AND b.epoch = g.returned_epoch
            LEFT ANTI JOIN (SELECT DISTINCT run, group_id, member_id, epoch, begun_ns FROM given WHERE api = 'JoinGroup') later
                ON later.run = g.run AND later.group_id = g.group_id AND later.member_id = g.member_id AND later.epoch = b.epoch
                   AND later.begun_ns > b.given_ns
            WHERE g.error = 0 AND g.returned_epoch > 0 AND g.api IN ('SyncGroup', 'ConsumerGroupHeartbeat') GROUP BY ALL)
        GROUP BY run, group_id, epoch
    ), ordered AS (
        SELECT *, lag(given_ns, 1, 0L) OVER g AS before_ns, lag(epoch) OVER g AS before_epoch, lag(members) OVER g AS members_before
        FROM begun LEFT JOIN reached USING (run, group_id, epoch) WINDOW g AS (PARTITION BY run, group_id ORDER BY given_ns, epoch)
    ), departures AS (
        SELECT run, group_id, member_id, min(ready_ns) AS at_ns, max(reason) AS reason FROM {{groups}}
        WHERE {LEAVES} AND error = 0 AND member_id IS NOT NULL GROUP BY run, group_id, member_id, seq
    ), last_seen AS (SELECT run, group_id, member_id, max(ready_ns) AS at_ns FROM {{groups}} WHERE error = 0 GROUP BY ALL
    ), causes AS (
        SELECT o.run, o.group_id, o.epoch, g.begun_ns AS at_ns, concat('member ', g.member_id, ' joined') AS cause
        FROM ordered o JOIN given g ON g.run = o.run AND g.group_id = o.group_id AND g.epoch = o.epoch AND g.is_new
        UNION ALL
        SELECT o.run, o.group_id, o.epoch, d.at_ns, concat('member ', d.member_id, ' left', coalesce(concat(' (', d.reason, ')'), ''))
        FROM ordered o JOIN departures d ON d.run = o.run AND d.group_id = o.group_id AND d.at_ns > o.before_ns AND d.at_ns <= o.given_ns
        UNION ALL
        SELECT o.run, o.group_id, o.epoch, g.begun_ns, concat('member ', g.member_id,
               IF(g.subscribed <> g.subscribed_before, ' changed its subscription', concat(' joined again (', g.reason, ')')))
        FROM ordered o JOIN given g ON g.run = o.run AND g.group_id = o.group_id AND g.epoch = o.epoch AND NOT g.is_new
             AND g.ready_ns >= o.begins_ns AND (g.subscribed <> g.subscribed_before OR g.reason IS NOT NULL)
        UNION ALL
        SELECT o.run, o.group_id, o.epoch, l.at_ns,
               concat('member ', l.member_id, ' sent nothing for ', round((o.given_ns - l.at_ns) / 1e9, 1), ' s')
        FROM ordered o JOIN last_seen l ON l.run = o.run AND l.group_id = o.group_id AND array_contains(o.members_before, l.member_id)
             AND l.at_ns < o.begins_ns
        LEFT ANTI JOIN departures d ON d.run = l.run AND d.group_id = l.group_id AND d.member_id = l.member_id
    ), observed AS (
        SELECT run, group_id, epoch, array_join(transform(array_sort(collect_set(struct(at_ns, cause))), c -> c.cause), '; ') AS causes
        FROM causes GROUP BY run, group_id, epoch
    ), changes AS (
        SELECT run, seq, get_json_object(facts, '$.group') AS group_id, CAST(get_json_object(facts, '$.epoch') AS int) AS epoch,
               from_json(get_json_object(facts, '$.causes'), 'array<string>') AS causes,
               lag(CAST(get_json_object(facts, '$.epoch') AS int), 1, 0) OVER (
                   PARTITION BY run, get_json_object(facts, '$.group') ORDER BY seq) AS before
        FROM {{events}} WHERE kind = 'group'
    ), assigned_changes AS (
        SELECT *, min(IF(epoch > before, struct(seq, epoch), NULL)) OVER (
            PARTITION BY run, group_id ORDER BY seq ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING).epoch AS of_epoch
        FROM changes
    ), recorded AS (
        SELECT run, group_id, of_epoch AS epoch, nullif(array_join(array_distinct(flatten(collect_list(causes))), '; '), '') AS causes
        FROM assigned_changes WHERE of_epoch IS NOT NULL GROUP BY run, group_id, of_epoch
    )
    SELECT o.group_id, o.before_epoch AS from_epoch, o.epoch AS to_epoch, round((o.begins_ns - starts_ns) / 1e9, 3) AS begins_s,
           round((o.ends_ns - o.begins_ns) / 1e6, 3) AS took_ms, size(o.members) AS members,
           coalesce(r.causes, s.causes, 'unknown: the trace shows no request that explains it') AS causes,
           CASE WHEN r.causes IS NOT NULL THEN 'coordinator' WHEN s.causes IS NOT NULL THEN 'requests' END AS causes_from
    FROM ordered o JOIN starts USING (run)
    LEFT JOIN recorded r ON r.run = o.run AND r.group_id = o.group_id AND r.epoch = o.epoch
    LEFT JOIN observed s ON s.run = o.run AND s.group_id = o.group_id AND s.epoch = o.epoch
    ORDER BY o.group_id, o.begins_ns, o.epoch
"""

ANSWER = Answer(
    "rebalances",
    "Why did each group rebalance?",
    (
        Query(
            "rebalances",
            "each new generation or epoch of a group. took_ms: from the first request that joined it until the last member had its partitions; "
            "causes_from: coordinator if the recording broker reported the causes, requests if they follow from the requests of members",
            REBALANCES,
        ),
    ),
)
