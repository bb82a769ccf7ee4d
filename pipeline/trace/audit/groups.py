"""Rules of consumer groups: generations and epochs, owners of partitions, and commits of members that are no longer in the group.

All rules but `recorded_epochs` use only requests and responses, so they also apply to a Kafka broker behind the proxy. Such a trace does not show
when a session times out inside the broker, so no rule may depend on the timeout. A deleted or empty group starts again at generation or epoch 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ERROR, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CONSUMER_GROUPS = """(
    SELECT DISTINCT run, group_id FROM {groups} WHERE api = 'ConsumerGroupHeartbeat' OR api = 'JoinGroup' AND error = 0 AND leader IS NULL)"""
"""SQL: a subquery with the groups (run, group_id) that use the consumer group protocol (KIP-848).

A member that uses the classic protocol in such a group receives its member epoch as generation.
"""
COMMITS = """(
    SELECT run, seq, broker, group_id, member_id, instance_id, requested_epoch, coalesce(topic, topic_id) AS topic, partition, offset,
           begun_ns, ready_ns
    FROM {group_offsets}
    WHERE api IN ('OffsetCommit', 'TxnOffsetCommit') AND error = 0 AND member_id IS NOT NULL AND requested_epoch >= 0)"""
"""SQL: a subquery with the accepted commits of group members. Commits of admin tools have no member and are left out."""


def _partitions(column: str) -> str:
    """Return LATERAL VIEW clauses that make a row for each partition in a column such as `assigned`.

    column: name of a column with JSON that maps topics to lists of partitions. Each row gets the columns `listed` (topic) and `partition`.
    """
    return f"LATERAL VIEW explode(from_json({column}, 'map<string, array<int>>')) AS listed, indexes LATERAL VIEW explode(indexes) AS partition"


def _floors(checks: str) -> str:
    """Return SQL that adds a column `floor` to rows about requests of classic groups: the highest generation in responses before the request.

    checks: SQL for the rows, with columns run, seq, broker, group_id, member_id, epoch, begun_ns, ready_ns and detail (string). Rows of groups that
    use the consumer group protocol are dropped. floor: a struct with the fields epoch (the generation), at_ns and seq (time and sequence number of
    the response with this generation). It is null if no response is known.

    - A SyncGroup response counts, whichever broker sent it: the coordinator stores a generation before it sends SyncGroup responses. A JoinGroup
      response counts only if the broker of the row sent it.
    - After a group has started again at generation 1, its earlier responses do not count. A group has started again in two cases: it was deleted, or
      a JoinGroup response has generation 1, and neither the member that gets the response nor the leader that the response names had joined before.
    """
    return f"""
        WITH joined AS (
            SELECT *, min(ready_ns) OVER (PARTITION BY run, group_id, member_id) AS first_ns FROM {{groups}}
            WHERE api = 'JoinGroup' AND error = 0 AND returned_epoch >= 0
        ), members AS (SELECT DISTINCT run, group_id, member_id AS leader, first_ns AS leader_ns FROM joined
        ), points AS (
            SELECT run, seq, broker, group_id, member_id, epoch, begun_ns, ready_ns, detail, begun_ns AS at_ns, 2 AS turn FROM ({checks})
            UNION ALL
            SELECT run, seq, broker, group_id, member_id, returned_epoch, begun_ns, ready_ns, api, ready_ns, 1 FROM joined
            UNION ALL
            SELECT run, seq, broker, group_id, member_id, returned_epoch, begun_ns, ready_ns, api, ready_ns, 1 FROM {{groups}}
            WHERE api = 'SyncGroup' AND error = 0
            UNION ALL
            SELECT run, seq, broker, group_id, member_id, NULL, begun_ns, ready_ns, api, explode(array(begun_ns, ready_ns)), 0
            FROM joined LEFT JOIN members USING (run, group_id, leader)
            WHERE returned_epoch <= 1 AND ready_ns = first_ns AND coalesce(leader_ns >= begun_ns, true)
            UNION ALL
            SELECT run, seq, broker, group_id, NULL, NULL, begun_ns, ready_ns, api, begun_ns, 0 FROM {{groups}}
            WHERE api = 'DeleteGroups' AND coalesce(error, 0) = 0
        ), lives AS (
            SELECT *, count_if(turn = 0) OVER (PARTITION BY run, group_id ORDER BY at_ns, turn, seq) AS life
            FROM points LEFT ANTI JOIN {CONSUMER_GROUPS} USING (run, group_id)
        ), known AS (
            SELECT *,
                   max(IF(turn = 1 AND detail = 'SyncGroup', struct(epoch, at_ns, seq), NULL)) OVER (
                       PARTITION BY run, group_id, life ORDER BY at_ns, turn, seq) AS stored,
                   max(IF(turn = 1 AND detail = 'JoinGroup', struct(epoch, at_ns, seq), NULL)) OVER (
                       PARTITION BY run, group_id, life, broker ORDER BY at_ns, turn, seq) AS given
            FROM lives
        )
        SELECT run, seq, group_id, member_id, epoch, begun_ns, ready_ns, detail, greatest(stored, given) AS floor FROM known WHERE turn = 2"""


# ---- generations and epochs --------------------------------------------------------------------------------------------------


def generations(tables: Tables) -> DataFrame:
    """Check that generations and epochs in responses never fall, in a classic group and for each member of a consumer group.

    Returns one row per JoinGroup or ConsumerGroupHeartbeat response, if an epoch to compare with is known. A member that joins a consumer group must
    get at least the highest epoch that any member got before. When a member joins again, the earlier epochs of this member are ignored.

    Columns:

    - run (the recording), seq (of the request), group_id, member_id: the request.
    - epoch: the generation or epoch in the response.
    - before_epoch: the highest generation or epoch in earlier responses, or the epoch in the request itself. before_seq: `seq` of the request to
      which `before_epoch` belongs.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: `before_epoch` minus `epoch`.
    """
    checks = """
        SELECT run, seq, broker, group_id, member_id, returned_epoch AS epoch, begun_ns, ready_ns, 'joins' AS detail FROM {groups}
        WHERE api = 'JoinGroup' AND error = 0 AND returned_epoch >= 0"""
    classic = f"""
        SELECT run, seq, group_id, member_id, epoch, floor.epoch AS before_epoch, floor.seq AS before_seq, floor.at_ns AS before_ns,
               ready_ns AS then_ns
        FROM ({_floors(checks)})"""
    consumer = """
        WITH beats AS (
            SELECT run, seq, group_id, member_id, requested_epoch, returned_epoch, begun_ns, ready_ns FROM {groups}
            WHERE api = 'ConsumerGroupHeartbeat' AND error = 0 AND member_id IS NOT NULL
        ), points AS (
            SELECT *, begun_ns AS at_ns, 2 AS turn FROM beats WHERE requested_epoch >= 0
            UNION ALL SELECT *, ready_ns, 1 FROM beats WHERE returned_epoch > 0
            UNION ALL SELECT *, begun_ns, 0 FROM beats WHERE requested_epoch <= 0
            UNION ALL SELECT *, ready_ns, -1 FROM beats WHERE requested_epoch = 0 AND returned_epoch <= 1
            UNION ALL
            SELECT run, seq, group_id, NULL, NULL, NULL, begun_ns, ready_ns, begun_ns, -1 FROM {groups}
            WHERE api = 'DeleteGroups' AND coalesce(error, 0) = 0 OR api = 'JoinGroup' AND error = 0 AND leader IS NOT NULL
        ), lives AS (
            SELECT *, count_if(turn = -1) OVER (PARTITION BY run, group_id ORDER BY at_ns, turn, seq) AS life,
                   count_if(turn = 0) OVER (PARTITION BY run, group_id, member_id ORDER BY at_ns, turn, seq) AS membership
            FROM points
        ), known AS (
            SELECT *,
                   max(IF(turn = 1, struct(returned_epoch AS epoch, at_ns, seq), NULL)) OVER (
                       PARTITION BY run, group_id, life ORDER BY at_ns, turn, seq) AS of_group,
                   max(IF(turn = 1, struct(returned_epoch AS epoch, at_ns, seq), NULL)) OVER (
                       PARTITION BY run, group_id, life, member_id, membership ORDER BY at_ns, turn, seq) AS of_member
            FROM lives
        ), floors AS (
            SELECT *, CASE WHEN requested_epoch = 0 THEN IF(returned_epoch <= 1, NULL, of_group)
                           WHEN returned_epoch < requested_epoch OR of_member IS NULL
                           THEN struct(requested_epoch AS epoch, CAST(NULL AS bigint) AS at_ns, seq)
                           ELSE of_member END AS floor
            FROM known WHERE turn = 2
        )
        SELECT run, seq, group_id, member_id, returned_epoch AS epoch, floor.epoch AS before_epoch, floor.seq AS before_seq,
               floor.at_ns AS before_ns, ready_ns AS then_ns
        FROM floors"""
    both = tables.sql(classic).unionByName(tables.sql(consumer)).where("before_epoch IS NOT NULL")
    rows = both.selectExpr("*", "epoch < before_epoch AS broken", "CAST(before_epoch - epoch AS double) AS excess")
    return tables.undecided_if_missing(rows, "before_ns", "then_ns").drop("before_ns", "then_ns")


def recorded_epochs(tables: Tables) -> DataFrame:
    """Check that no group change that a broker recorded lowers the generation or epoch. Only the broker of this project records such changes.

    Returns one row per pair of successive changes of a group.

    Columns:

    - run (the recording), seq, group_id, type, state: the later change of the pair, with the state of the group after it.
    - epoch, before_epoch: the generation or epoch of the group after the later and after the earlier change.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: `before_epoch` minus `epoch`.
    """
    rows = tables.sql("""
        WITH changes AS (
            SELECT run, seq, broker, at_ns, get_json_object(facts, '$.group') AS group_id, get_json_object(facts, '$.type') AS type,
                   get_json_object(facts, '$.state') AS state, CAST(get_json_object(facts, '$.epoch') AS int) AS epoch
            FROM {events} WHERE kind = 'group'
        ), paired AS (
            SELECT *, lag(struct(epoch, type, state, at_ns)) OVER (PARTITION BY run, broker, group_id ORDER BY seq) AS before FROM changes
        )
        SELECT run, seq, group_id, type, state, epoch, before.epoch AS before_epoch, before.at_ns AS before_ns, at_ns AS then_ns,
               epoch < before.epoch AS broken, CAST(before.epoch - epoch AS double) AS excess
        FROM paired WHERE before.type = type AND before.state <> 'Dead' AND state <> 'Dead'
    """)
    return tables.undecided_if_missing(rows, "before_ns", "then_ns").drop("before_ns", "then_ns")


# ---- owners of partitions ----------------------------------------------------------------------------------------------------


def owners(tables: Tables) -> DataFrame:
    """Check that no partition has two owners in a group. Returns one row per partition and assignment to a member.

    In a classic group, the assignments of one generation must not share a partition. In a consumer group, a member owns a partition from the
    response that assigns it until the member reports the revocation of the partition, leaves the group, or joins again. The session timeout of a
    member leaves no request in the trace, so a second owner breaks the rule only if the first owner sends further requests with its own member epoch.

    Columns:

    - run (the recording), seq (of the request whose response assigns the partition), group_id, topic, partition: the assignment.
    - member_id: the new owner.
    - other_member_id: in a classic group, the first member to which an earlier response of the same generation assigned the partition. It may be the
      new owner itself. In a consumer group, the other member that still owns the partition. Null if there is no such member.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: 1, because a fault of this kind has no size.
    """
    classic = f"""
        WITH others AS (SELECT DISTINCT run, group_id FROM {{groups}} WHERE api = 'JoinGroup' AND protocol_type <> 'consumer'
        ), restarts AS (
            SELECT run, group_id, member_id, min(ready_ns) AS at_ns FROM {{groups}} WHERE api = 'JoinGroup' AND error = 0
            GROUP BY run, group_id, member_id HAVING min_by(returned_epoch, ready_ns) <= 1
            UNION ALL
            SELECT run, group_id, NULL, begun_ns FROM {{groups}} WHERE api = 'DeleteGroups' AND coalesce(error, 0) = 0
        ), points AS (
            SELECT run, group_id, at_ns, NULL AS seq, NULL AS generation, NULL AS member_id, NULL AS owner, NULL AS assigned FROM restarts
            UNION ALL
            SELECT run, group_id, ready_ns, seq, requested_epoch, member_id, coalesce(instance_id, member_id), assigned
            FROM {{groups}} LEFT ANTI JOIN others USING (run, group_id) WHERE api = 'SyncGroup' AND error = 0 AND assigned IS NOT NULL
        ), lives AS (
            SELECT *, count_if(seq IS NULL) OVER (PARTITION BY run, group_id ORDER BY at_ns, seq) AS life FROM points
        ), owned AS (
            SELECT run, group_id, life, generation, listed AS topic, partition, owner, member_id, seq, at_ns
            FROM lives {_partitions("assigned")} WHERE assigned IS NOT NULL
        )
        SELECT run, seq, group_id, topic, partition, member_id, before.member_id AS other_member_id, before.at_ns AS before_ns, at_ns AS then_ns,
               before.owner IS NOT NULL AND before.owner <> owner AS broken
        FROM (SELECT *, first(struct(owner, member_id, at_ns)) OVER (
                  PARTITION BY run, group_id, life, generation, topic, partition ORDER BY at_ns, seq
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM owned)"""
    rows = tables.sql(classic).unionByName(_owners_of_consumer_groups(tables))
    with_excess = rows.selectExpr("*", "CAST(1 AS double) AS excess")
    return tables.undecided_if_missing(with_excess, "before_ns", "then_ns").drop("before_ns", "then_ns")


def _owners_of_consumer_groups(tables: Tables) -> DataFrame:
    """Return a row for each partition assigned to a member of a consumer group, with the other member that still owns the partition, if any.

    Columns:

    - run (the recording), seq (of the request whose response assigns the partition), group_id, topic, partition: the assignment.
    - member_id: the new owner. other_member_id: the other owner; null if there is none.
    - before_ns: when the other owner got the partition. then_ns: when the other owner later sent a request that shows that it is still a member. If
      the trace lacks entries between these two times, the other owner may have given the partition up with a missing request.
    - broken: true (a fault) if the partition has two owners.
    """
    # In the queries, `listed` is the topic as the member names it: by id, or by name in the classic protocol.
    requests = tables.sql("""
        WITH instances AS (
            SELECT run, group_id, member_id, max(instance_id) AS instance_id FROM {groups} WHERE member_id IS NOT NULL
            GROUP BY run, group_id, member_id
        )
        SELECT g.* EXCEPT (instance_id), coalesce(i.instance_id, g.member_id) AS owner,
               api = 'ConsumerGroupHeartbeat' AND requested_epoch <= 0 OR api = 'LeaveGroup' AS leaves,
               coalesce(api = 'ConsumerGroupHeartbeat' AND requested_epoch > 0 AND error = 0 OR api = 'Heartbeat' AND error IN (0, 27), false)
                   AS continues
        FROM {groups} g JOIN instances i ON i.run = g.run AND i.group_id = g.group_id AND i.member_id = g.member_id
        LEFT SEMI JOIN (SELECT run, group_id FROM {groups} WHERE api = 'ConsumerGroupHeartbeat' AND error = 0) c
            ON c.run = g.run AND c.group_id = g.group_id
    """)
    granted = tables.sql(
        f"""
        SELECT r.*, coalesce(n.name, r.listed) AS topic FROM (
            SELECT run, group_id, owner, member_id, seq, ready_ns AS at_ns, listed, partition
            FROM {{requests}} {_partitions("assigned")} WHERE assigned IS NOT NULL AND error = 0) r
        LEFT JOIN {{topic_names}} n ON n.run = r.run AND n.topic_id = r.listed
        """,
        requests=requests,
    )
    held = tables.sql(
        """
        SELECT g.run, g.group_id, g.owner, g.member_id, g.seq, g.topic, g.partition, g.at_ns, min(r.begun_ns) AS until_ns
        FROM {granted} g LEFT JOIN {requests} r ON r.run = g.run AND r.group_id = g.group_id AND r.owner = g.owner AND r.begun_ns > g.at_ns
            AND (r.leaves OR r.owned IS NOT NULL AND NOT coalesce(
                array_contains(try_element_at(from_json(r.owned, 'map<string, array<int>>'), g.listed), g.partition), false))
        GROUP BY g.run, g.group_id, g.owner, g.member_id, g.seq, g.topic, g.partition, g.at_ns
        """,
        granted=granted,
        requests=requests,
    )
    other_owners = tables.sql(
        """
        SELECT g.run, g.seq, g.group_id, g.topic, g.partition, max(struct(h.at_ns, h.member_id, r.begun_ns)) AS other
        FROM {granted} g
        JOIN {held} h ON h.run = g.run AND h.group_id = g.group_id AND h.topic = g.topic AND h.partition = g.partition AND h.owner <> g.owner
            AND h.at_ns < g.at_ns AND coalesce(h.until_ns > g.at_ns, true)
        JOIN {requests} r ON r.run = g.run AND r.group_id = g.group_id AND r.member_id = h.member_id AND r.continues AND r.begun_ns > g.at_ns
            AND coalesce(r.begun_ns <= h.until_ns, true)
        GROUP BY g.run, g.seq, g.group_id, g.topic, g.partition
        """,
        granted=granted,
        held=held,
        requests=requests,
    )
    return tables.sql(
        """
        SELECT g.run, g.seq, g.group_id, g.topic, g.partition, g.member_id, other.member_id AS other_member_id,
               other.at_ns AS before_ns, other.begun_ns AS then_ns, other IS NOT NULL AS broken
        FROM {granted} g LEFT JOIN {other_owners} o
            ON o.run = g.run AND o.seq = g.seq AND o.group_id = g.group_id AND o.topic = g.topic AND o.partition = g.partition
        """,
        granted=granted,
        other_owners=other_owners,
    )


# ---- commits -----------------------------------------------------------------------------------------------------------------


def fenced_commits(tables: Tables) -> DataFrame:
    """Check that no commit of a fenced member is accepted. Returns one row per accepted commit of a member.

    A member is fenced after it left the group, after a response with UNKNOWN_MEMBER_ID, after another member took over its group instance id, and
    when its classic group has a newer generation. A member that joins again is no longer fenced. In a consumer group, a member is fenced if its
    commit has an older epoch than the last response to its heartbeats: up to 4.2, brokers accept only the member's present epoch.

    Columns:

    - run (the recording), seq (of the commit), group_id, member_id, topic, partition: the commit.
    - epoch: the generation or member epoch in the commit.
    - fenced_by: why the member is fenced; null if it is not fenced. before_seq: `seq` of the request that fenced the member.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: 1, because a fault of this kind has no size.
    """
    commits = tables.sql(f"SELECT * FROM {COMMITS}")
    fences = (
        """
        WITH instances AS (
            SELECT DISTINCT run, group_id, instance_id, member_id FROM {groups}
            WHERE instance_id IS NOT NULL AND member_id IS NOT NULL AND error = 0 AND (api = 'JoinGroup' OR requested_epoch = 0)
        ), joins AS (
            SELECT * FROM {groups} WHERE member_id IS NOT NULL AND coalesce(error, 0) = 0
              AND (api = 'JoinGroup' OR api = 'ConsumerGroupHeartbeat' AND requested_epoch = 0)
        )
        SELECT run, group_id, member_id, seq, begun_ns AS at_ns, CAST(NULL AS string) AS why FROM joins
        UNION ALL SELECT run, group_id, member_id, seq, ready_ns, NULL FROM joins
        UNION ALL
        SELECT run, group_id, member_id, seq, ready_ns, 'left' FROM {groups}
        WHERE member_id IS NOT NULL AND error = 0 AND (api = 'LeaveGroup' OR api = 'ConsumerGroupHeartbeat' AND requested_epoch < 0)
        UNION ALL
        SELECT run, group_id, member_id, seq, ready_ns, 'unknown' FROM {groups}
        WHERE member_id IS NOT NULL AND instance_id IS NULL AND error = 25 AND api = 'ConsumerGroupHeartbeat' AND requested_epoch > 0
        UNION ALL
        SELECT run, group_id, member_id, seq, ready_ns, 'unknown' FROM {groups} LEFT ANTI JOIN """
        + CONSUMER_GROUPS
        + """ USING (run, group_id)
        WHERE member_id IS NOT NULL AND instance_id IS NULL AND error = 25 AND api IN ('Heartbeat', 'SyncGroup')
        UNION ALL
        SELECT g.run, g.group_id, i.member_id, g.seq, g.ready_ns, 'replaced'
        FROM {groups} g JOIN instances i ON i.run = g.run AND i.group_id = g.group_id AND i.instance_id = g.instance_id
        WHERE g.error = 0 AND (g.api = 'LeaveGroup' AND g.member_id IS NULL
                               OR (g.api = 'JoinGroup' OR g.requested_epoch = 0) AND g.member_id <> i.member_id)"""
    )
    of_members = tables.sql(
        f"""
        WITH points AS (
            SELECT run, group_id, member_id, seq, at_ns, why, 0 AS turn, NULL AS topic, NULL AS partition, NULL AS epoch FROM ({fences})
            UNION ALL SELECT run, group_id, member_id, seq, begun_ns, NULL, 1, topic, partition, requested_epoch FROM {{commits}}
        )
        SELECT run, seq, group_id, member_id, topic, partition, epoch, before.why, before.seq AS before_seq, before.at_ns AS before_ns,
               at_ns AS then_ns
        FROM (SELECT *, max(IF(turn = 0, struct(at_ns, why IS NULL, seq, why), NULL)) OVER (
                  PARTITION BY run, group_id, member_id ORDER BY at_ns, turn) AS before FROM points)
        WHERE turn = 1
        """,
        commits=commits,
    )
    checks = """
        SELECT run, seq, broker, group_id, member_id, requested_epoch AS epoch, begun_ns, ready_ns, concat(topic, ':', partition) AS detail
        FROM {commits}"""
    of_generations = tables.sql(
        f"""
        SELECT run, seq, group_id, member_id, substring_index(detail, ':', 1) AS topic, CAST(substring_index(detail, ':', -1) AS int) AS partition,
               epoch, IF(epoch < floor.epoch, 'generation', NULL) AS why, floor.seq AS before_seq, floor.at_ns AS before_ns, begun_ns AS then_ns
        FROM ({_floors(checks)}) WHERE floor IS NOT NULL
        """,
        commits=commits,
    )
    of_epochs = tables.sql(
        """
        WITH points AS (
            SELECT run, group_id, member_id, seq, ready_ns AS at_ns, 0 AS turn, returned_epoch, NULL AS topic, NULL AS partition,
                   requested_epoch AS epoch
            FROM {groups} WHERE api = 'ConsumerGroupHeartbeat' AND error = 0
            UNION ALL
            SELECT run, group_id, member_id, seq, begun_ns, 1, NULL, topic, partition, requested_epoch FROM {commits}
        ), known AS (
            SELECT *, last(IF(turn = 0, struct(returned_epoch, seq, at_ns), NULL), true) OVER (
                PARTITION BY run, group_id, member_id ORDER BY at_ns, turn) AS before
            FROM points
        )
        SELECT run, seq, group_id, member_id, topic, partition, epoch, IF(epoch < before.returned_epoch, 'epoch', NULL) AS why,
               before.seq AS before_seq, before.at_ns AS before_ns, at_ns AS then_ns
        FROM known WHERE turn = 1 AND before IS NOT NULL
        """,
        commits=commits,
    )
    rows = of_members.unionByName(of_generations).unionByName(of_epochs)
    broken = tables.sql(
        """
        SELECT run, seq, group_id, member_id, topic, partition, epoch, max(why) AS fenced_by, max(IF(why IS NULL, NULL, before_seq)) AS before_seq,
               max(why) IS NOT NULL AS broken, CAST(1 AS double) AS excess,
               min(IF(why IS NULL, NULL, before_ns)) AS before_ns, min(then_ns) AS then_ns
        FROM {rows} GROUP BY run, seq, group_id, member_id, topic, partition, epoch
        """,
        rows=rows,
    )
    return tables.undecided_if_missing(broken, "before_ns", "then_ns").drop("before_ns", "then_ns")


RULES = (
    Rule("21", "generations of a group and epochs of its members never decrease in responses", ERROR, generations),
    Rule("21-moved", "on one broker, the generation or epoch of a group never decreases", ERROR, recorded_epochs),
    Rule("22", "no partition has two owners in a group", ERROR, owners),
    Rule("23", "no commit of a fenced member is accepted", ERROR, fenced_commits),
)
