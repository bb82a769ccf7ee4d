"""Queries about partitions without an owner: how long no member of a group could read them."""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import Answer, Query
from kafkaproto.pipeline.trace.answers.groups import LEAVES, STARTS

MAX_LANES, MAX_BARS = 24, 60
"""The report's chart of the owners of partitions over time shows at most `MAX_LANES` partitions with at most `MAX_BARS` bars each.

A bar is the time in which one member owned the partition.
"""

OWNED = f"""
    {STARTS}, consumers AS (
        SELECT g.*, r.client_id FROM (SELECT * EXCEPT (hour) FROM {{groups}} WHERE member_id IS NOT NULL) g
        JOIN (SELECT run, seq, client_id FROM {{requests}}) r USING (run, seq)
        WHERE coalesce(protocol_type, 'consumer') = 'consumer'
    ), sets AS (
        SELECT run, group_id, member_id, ready_ns AS at_ns, 1 AS turn, assigned AS held FROM consumers WHERE assigned IS NOT NULL AND error = 0
        UNION ALL
        SELECT run, group_id, member_id, begun_ns, 0, coalesce(owned, '{{{{}}}}') FROM consumers
        WHERE owned IS NOT NULL OR api = 'JoinGroup' OR {LEAVES}
        UNION ALL
        SELECT run, group_id, member_id, ready_ns, 0, '{{{{}}}}' FROM consumers WHERE error IN (25, 82, 110)
        UNION ALL
        SELECT run, group_id, member_id, max(ready_ns), 2, '{{{{}}}}' FROM consumers WHERE coalesce(error, 0) IN (0, 27)
        GROUP BY run, group_id, member_id
    ), intervals AS (
        SELECT *, lead(at_ns) OVER (PARTITION BY run, group_id, member_id ORDER BY at_ns, turn) AS until_ns FROM sets
    ), exploded AS (
        SELECT run, group_id, member_id, listed, partition, at_ns, until_ns FROM intervals
        LATERAL VIEW explode(from_json(held, 'map<string, array<int>>')) AS listed, indexes LATERAL VIEW explode(indexes) AS partition
        WHERE until_ns > at_ns
    ), owners AS (
        SELECT e.run, e.group_id, e.member_id, coalesce(n.name, e.listed) AS topic, e.partition, e.at_ns, e.until_ns
        FROM exploded e LEFT JOIN {{topic_names}} n ON n.run = e.run AND n.topic_id = e.listed
    ), gaps AS (
        SELECT *, max(until_ns) OVER (PARTITION BY run, group_id, topic, partition ORDER BY at_ns, until_ns
                                      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS free_ns
        FROM owners
    )"""

PARTITIONS = f"""
    WITH {OWNED}
    SELECT group_id, topic, partition, count_if(at_ns > free_ns) AS times, round(sum(greatest(at_ns - free_ns, 0)) / 1e6, 3) AS without_owner_ms,
           round(max(greatest(at_ns - free_ns, 0)) / 1e6, 3) AS longest_ms,
           round(max_by(free_ns - starts_ns, at_ns - free_ns) / 1e9, 3) AS longest_from_s,
           round((max(until_ns) - any_value(starts_ns)) / 1e9, 3) AS owned_until_s, count(DISTINCT member_id) AS owners
    FROM gaps JOIN starts USING (run) GROUP BY run, group_id, topic, partition ORDER BY without_owner_ms DESC NULLS LAST, group_id, topic, partition
"""

OWNERS = f"""
    WITH {OWNED}, lanes AS (
        SELECT run, group_id, topic, partition, row_number() OVER (ORDER BY unread DESC NULLS LAST, group_id, topic, partition) AS lane
        FROM (SELECT run, group_id, topic, partition, sum(greatest(at_ns - free_ns, 0)) AS unread FROM gaps GROUP BY ALL)
    ), names AS (SELECT run, member_id, max(client_id) AS client_id FROM consumers GROUP BY run, member_id
    ), joined AS (
        SELECT *, sum(IF(at_ns <= ended_ns AND member_id = before_member, 0, 1)) OVER (
                   PARTITION BY run, group_id, topic, partition ORDER BY at_ns, until_ns) AS bar
        FROM (SELECT *, lag(until_ns) OVER l AS ended_ns, lag(member_id) OVER l AS before_member FROM owners
              WINDOW l AS (PARTITION BY run, group_id, topic, partition ORDER BY at_ns, until_ns))
    ), bars AS (
        SELECT run, group_id, topic, partition, bar, any_value(member_id) AS member_id, min(at_ns) AS at_ns, max(until_ns) AS until_ns FROM joined
        GROUP BY run, group_id, topic, partition, bar
    )
    SELECT group_id, topic, partition, member_id, client_id, round((at_ns - starts_ns) / 1e9, 3) AS from_s,
           round((until_ns - starts_ns) / 1e9, 3) AS until_s
    FROM bars JOIN lanes USING (run, group_id, topic, partition) JOIN starts USING (run) JOIN names USING (run, member_id)
    WHERE lane <= {MAX_LANES} AND bar <= {MAX_BARS} ORDER BY group_id, topic, partition, from_s
"""

ANSWER = Answer(
    "unread",
    "How long did partitions have no consumer?",
    (
        Query(
            "partitions",
            "each partition of a group: how often (times) and how long (without_owner_ms) no member owned it: from the request with which its owner "
            "released it or left the group, or from the last request of an owner that timed out, until a response assigned it to a member",
            PARTITIONS,
        ),
        Query(
            "owners",
            f"the owners over time, for the {MAX_LANES} partitions that had no owner for the longest time",
            OWNERS,
        ),
    ),
)
