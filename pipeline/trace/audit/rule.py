"""A rule, its outcome, and the tables that it queries. If a rule found nothing to check, its verdict is "not exercised", never "holds".

This module does not depend on any particular rule.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Formatter
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.pipeline.capture import files as captures
from kafkaproto.pipeline.capture.conversation import SEQ_PER_PACKET
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from kafkaproto.pipeline.trace.tables import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE_ROWS = 5
ERROR, WARNING = "error", "warning"
HOLDS, BROKEN, NOT_EXERCISED = "holds", "broken", "not exercised"


NAMES = tuple(TABLES)


class Tables:
    """The tables of a trace as DataFrames, and seven tables derived from them. A query for `sql` names these tables in braces.

    Several threads may query one object. Two objects share nothing but the Spark session. A column `where_` has the topic name, or the id if the name
    is not known; a column `run` has the name of a recording. `name (a, b)` is an array of structs with the fields a and b.

    - requests, partitions, batches, events, state, groups, group_offsets, transactions: the tables of `kafkaproto.pipeline.trace.schema`. A table
      that is not given is empty.
    - settings: a row for each broker whose settings are in the trace: run, broker, window_num and window_s (`quota.window.num`,
      `quota.window.size.seconds`), fetch_max_bytes, policy (`log.cleanup.policy`), selector (`replica.selector.class`).
    - policies: run, where_, compacts (whether the topic was ever compacted). Only topics whose cleanup policy is known.
    - cuts_of: run, where_ (null: all topics), cuts (from_ns, until_ns): the times when a log may have been truncated or replaced.
    - states_of: run, where_, partition, states (at_ns, seq, leader, isr), ordered by time. Only runs that report a leader or isr; null: unknown.
    - consumed: the batches that consumers received, with where_ and life, a number that increases whenever the log may have been truncated or
      replaced.
    - topic_names: run, topic_id, name.
    - gaps: run, entries (number of missing entries, 0 if unknown), gaps (from_ns, until_ns): the times at which the missing entries may have
      occurred. Only runs that lack entries.
    """

    def __init__(
        self,
        requests: DataFrame | None = None,
        partitions: DataFrame | None = None,
        batches: DataFrame | None = None,
        events: DataFrame | None = None,
        state: DataFrame | None = None,
        groups: DataFrame | None = None,
        group_offsets: DataFrame | None = None,
        transactions: DataFrame | None = None,
    ) -> None:
        """Use the given tables of a trace. A table that is None is treated as empty. Raises ValueError if all are None."""
        frames = (requests, partitions, batches, events, state, groups, group_offsets, transactions)
        spark = next((frame.sparkSession for frame in frames if frame is not None), None)
        if spark is None:
            raise ValueError(f"all tables are None; give at least one of {', '.join(NAMES)}")
        self._spark = spark
        self._frames: dict[str, DataFrame] = {
            name: spark.createDataFrame([], ddl(name)) if frame is None else frame
            for name, frame in zip(NAMES, frames, strict=True)
        }
        self.requests, self.partitions, self.events = (
            self._frames[name] for name in ("requests", "partitions", "events")
        )
        self._deriving = RLock()
        self._complete: bool | None = None

    @classmethod
    def of(cls, spark: SparkSession, out: Path) -> Tables:
        """Return the tables of a trace that are stored in the folder `out`."""
        return cls(*(read(spark, out, table) for table in NAMES))

    def sql(self, query: str, **more: DataFrame) -> DataFrame:
        """Run a query that contains names of tables in braces: `SELECT run FROM {requests}`.

        Any other brace in the query must be doubled, as for `str.format`. more: DataFrames for further names. Raises KeyError for a name that is
        neither a table nor in `more`, and any exception of Spark.
        """
        names = {name for _, name, _, _ in Formatter().parse(query) if name}
        # Spark makes a view for each frame and drops it. Spark 4.0 then also uncaches the plan of the view: a filter, which the optimizer
        # removes, makes that another plan than the frame's own.
        views = {name: (more[name] if name in more else self.table(name)).where("true") for name in names}
        return self._spark.sql(query, None, **views)

    def table(self, name: str) -> DataFrame:
        """Return a table by its name; a derived table is computed when it is first used. Raises KeyError for an unknown name."""
        with self._deriving:
            if name not in self._frames:
                rows = self.sql(DERIVED[name])
                # All but the batches are few rows that many rules join: computed once.
                self._frames[name] = rows if name == "consumed" else rows.coalesce(1).localCheckpoint()
            return self._frames[name]

    @property
    def is_complete(self) -> bool:
        """Return True if the trace of every run (recording) is complete, False if any trace may lack an exchange or event."""
        with self._deriving:
            if self._complete is None:
                self._complete = self.table("gaps").isEmpty()
            return self._complete

    def without_truncations(self, rows: DataFrame, start_ns: str, end_ns: str) -> DataFrame:
        """Drop rows that break a rule only because a log may have been truncated, and rename the column `where_` to `topic`.

        rows: each compares the state of a log at two times. Columns: `run`, `where_` (topic name or id), `broken` (true if the row breaks the rule)
        and the two times. start_ns, end_ns: names of the two columns with the times; the result lacks these columns. A row with `broken` true is
        dropped if the log may have been truncated or replaced between the two times. Otherwise `broken` becomes null (undecided) if the trace lacks
        entries between the two times.
        """
        undecided = self.undecided_if_missing(rows, start_ns, end_ns)
        for scope, keys in (("where_ IS NULL", ["run"]), ("where_ IS NOT NULL", ["run", "where_"])):
            cuts = self.table("cuts_of").where(scope).select(*keys, "cuts")
            between = f"exists(cuts, c -> c.from_ns <= greatest({start_ns}, {end_ns}) AND c.until_ns >= least({start_ns}, {end_ns}))"
            joined = undecided.join(cuts.hint("broadcast"), keys, "left")
            undecided = joined.where(f"NOT (broken AND coalesce({between}, false))").drop("cuts")
        return undecided.drop(start_ns, end_ns).withColumnRenamed("where_", "topic")

    def undecided_if_missing(self, rows: DataFrame, start_ns: str, end_ns: str) -> DataFrame:
        """Set `broken` to null (undecided) where it is true and the trace lacks entries between two times.

        rows: have the columns `run` and `broken`. start_ns, end_ns: SQL expressions for the two times in ns; null where no missing entry could
        explain the row.
        """
        if self.is_complete:
            return rows
        missing = f"exists(gaps, g -> g.from_ns <= greatest({start_ns}, {end_ns}) AND g.until_ns >= least({start_ns}, {end_ns}))"
        explainable = f"({start_ns}) IS NOT NULL AND ({end_ns}) IS NOT NULL"
        gaps = self.table("gaps").select("run", "gaps")
        with_gaps = rows.join(gaps.hint("broadcast"), "run", "left")
        decided = (
            f"CASE WHEN broken AND {explainable} AND coalesce({missing}, false) THEN NULL ELSE broken END AS broken"
        )
        return with_gaps.selectExpr("* EXCEPT (broken, gaps)", decided)

    def undecided_if_missing_before(self, rows: DataFrame, then_ns: str) -> DataFrame:
        """Set `broken` to null (undecided) where it is true and the trace lacks entries before a given time.

        rows: have the columns `run` and `broken`. then_ns: SQL expression for the time in ns.
        """
        return self.undecided_if_missing(rows, f"IF(({then_ns}) IS NULL, NULL, {NEVER_NS})", then_ns)


SETTINGS = """
    WITH reported AS (
        SELECT run, explode(from_json(get_json_object(facts, '$.brokers'), 'array<struct<id: int, settings: map<string, string>>>')) AS broker_facts
        FROM {events} WHERE kind = 'meta'
    )
    SELECT run, broker_facts.id AS broker, try_cast(broker_facts.settings['quota.window.num'] AS bigint) AS window_num,
           try_cast(broker_facts.settings['quota.window.size.seconds'] AS bigint) AS window_s,
           try_cast(broker_facts.settings['fetch.max.bytes'] AS bigint) AS fetch_max_bytes, broker_facts.settings['log.cleanup.policy'] AS policy,
           broker_facts.settings['replica.selector.class'] AS selector
    FROM reported WHERE broker_facts.settings IS NOT NULL"""
POLICIES = """
    WITH reported AS (
        SELECT run, get_json_object(facts, '$.topic') AS where_,
               max(coalesce(from_json(facts, 'configs map<string, string>').configs['cleanup.policy'] LIKE '%compact%', false)) AS compacts
        FROM {events} WHERE kind = 'topic' GROUP BY run, get_json_object(facts, '$.topic')
    ), defaults AS (SELECT run, max(policy LIKE '%compact%') AS compacts FROM {settings} GROUP BY run)
    SELECT reported.run, where_, reported.compacts OR defaults.compacts AS compacts FROM reported JOIN defaults USING (run)
    WHERE reported.compacts OR defaults.compacts IS NOT NULL"""
CUTS = """
    WITH seen AS (
        SELECT run, at_ns, kind, get_json_object(facts, '$.topic') AS topic, get_json_object(facts, '$.topic_id') AS topic_id
        FROM {events}
        WHERE kind IN ('broker', 'recovery', 'leader')
           OR kind = 'log' AND get_json_object(facts, '$.what') <> 'start'
           OR kind = 'topic' AND get_json_object(facts, '$.state') IN ('deleted', 'created')
    ), ids AS (
        SELECT DISTINCT run, get_json_object(facts, '$.topic') AS topic, get_json_object(facts, '$.topic_id') AS topic_id
        FROM {events} WHERE kind IN ('topic', 'named')
    ), named AS (
        SELECT run, get_json_object(facts, '$.topic') AS topic, get_json_object(facts, '$.topic_id') AS topic_id, at_ns,
               CAST(get_json_object(facts, '$.begun_ns') AS bigint) AS begun_ns, broker, seq
        FROM {events} LEFT ANTI JOIN (SELECT run FROM {events} WHERE kind = 'topic') USING (run) WHERE kind = 'named'
    ), renamed AS (
        SELECT DISTINCT run, topic, at_ns, before.topic_id, before.begun_ns FROM (
            SELECT run, topic, topic_id, at_ns, lag(struct(topic_id, begun_ns)) OVER (PARTITION BY run, topic ORDER BY at_ns, seq) AS before
            FROM named
            UNION ALL
            SELECT run, topic, topic_id, at_ns, lag(struct(topic_id, begun_ns)) OVER (PARTITION BY run, broker, topic ORDER BY at_ns, seq)
            FROM named)
        WHERE before.topic_id <> topic_id
    ), sighted AS (
        SELECT /*+ BROADCAST(n) */ p.run, p.topic_id, n.at_ns, max(p.begun_ns) AS begun_ns
        FROM {partitions} p JOIN renamed n ON p.run = n.run AND p.topic_id = n.topic_id AND p.begun_ns < n.at_ns
        WHERE p.error = 0 GROUP BY p.run, p.topic_id, n.at_ns
    ), cuts AS (
        SELECT run, CASE WHEN kind IN ('broker', 'recovery') THEN NULL ELSE topic END AS where_, at_ns AS from_ns, at_ns AS until_ns FROM seen
        UNION ALL
        SELECT run, ids.topic_id, at_ns, at_ns FROM seen JOIN ids USING (run, topic) WHERE kind NOT IN ('broker', 'recovery')
        UNION ALL
        SELECT run, topic, greatest(renamed.begun_ns, sighted.begun_ns), at_ns FROM renamed LEFT JOIN sighted USING (run, topic_id, at_ns)
        UNION ALL
        SELECT run, NULL, coalesce(handled_ns, received_ns), ready_ns FROM {requests} WHERE api = 'DeleteTopics'
    )
    SELECT run, where_, collect_list(struct(from_ns, until_ns)) AS cuts FROM cuts GROUP BY run, where_"""
"""SQL for the derived table `cuts_of`: when each log may have been truncated, or replaced by the log of a new topic with the same name.

Some runs (recordings) do not record changes of topics. In such a run, a topic was created again if responses contain a new topic id. This may have
happened at any time from the last response with the old id to the first response with the new id.
"""
STATES = """
    WITH stated AS (
        SELECT run, at_ns, seq, topic, position AS partition, state.leader AS leader, state.isr AS isr FROM (
            SELECT run, at_ns, seq, get_json_object(facts, '$.topic') AS topic,
                   posexplode(from_json(get_json_object(facts, '$.partitions'), 'array<struct<leader: int, isr: array<int>>>')) AS (position, state)
            FROM {events} WHERE kind = 'topic' AND get_json_object(facts, '$.state') <> 'deleted')
        UNION ALL
        SELECT run, at_ns, seq, get_json_object(facts, '$.topic'), CAST(get_json_object(facts, '$.partition') AS int),
               CASE WHEN kind = 'leader' THEN CAST(get_json_object(facts, '$.leader') AS int) END,
               CASE WHEN kind = 'isr' THEN from_json(get_json_object(facts, '$.isr'), 'array<int>') END
        FROM {events} WHERE kind IN ('leader', 'isr')
    )
    SELECT run, topic AS where_, partition, sort_array(collect_list(struct(at_ns, seq, leader, isr))) AS states FROM stated
    GROUP BY run, topic, partition"""
FIRST_NEVER_HELD = 8
HELD = f"coalesce(held, api_version < {FIRST_NEVER_HELD} AND coalesce(throttle_ms, 1) > 0)"
"""SQL: true if the broker may have delayed a Fetch response for its throttle time, instead of sending it at once without records.

The column `held` of `requests` says whether the broker delayed the response. If it is null, the API version decides: a broker that accepts version 8
or later is of release 2.0 or later, and delays no response (KIP-219). With a lower version, it may have delayed a response with a throttle time.
"""
NEVER_NS, EVER_NS = "0L", f"{2**63 - 1}L"
"""SQL literals in ns: a time before everything in a run (a recording), and a time after everything."""
LONGEST_EXCHANGE_NS = 30_000_000_000
"""The longest time in ns that is assumed to pass between a request and its response.

`GAPS` has intervals in which missing entries may have occurred. For a proxy or a capture, it adds this time to the end of each interval. For a
capture, it also lets each interval begin earlier by this time.
"""
MAX_GAPS = 256
"""The maximum number of gaps (times in which entries may be missing) of a run (a recording). If there are more, neighbouring gaps are merged."""
GAPS = f"""
    WITH counted AS (
        SELECT run, seq, coalesce(handled_ns, received_ns) AS at_ns FROM {{requests}}
        UNION ALL SELECT run, seq, at_ns FROM {{events}} WHERE kind NOT IN ('named', 'rack')
        UNION ALL SELECT run, seq, at_ns FROM {{state}}
    ), blocks AS (
        SELECT run, seq DIV 64 AS block, bit_or(shiftleft(1L, CAST(seq % 64 AS int))) AS there, min(at_ns) AS begins_ns,
               max(at_ns) AS ends_ns, max(seq) AS last
        FROM counted WHERE seq > 0 AND NOT run RLIKE r'{captures.NAMED.pattern}' GROUP BY run, seq DIV 64
    ), neighbours AS (
        SELECT *, lag(block, 1, -1L) OVER r AS before, lag(ends_ns, 1, {NEVER_NS}) OVER r AS before_ns, lead(begins_ns) OVER r AS then_ns,
               lead(block) OVER r IS NULL AS ends
        FROM blocks WINDOW r AS (PARTITION BY run ORDER BY block)
    ), missing AS (
        SELECT run, inline(array(
            struct(before_ns AS from_ns, begins_ns AS until_ns, 64 * (block - before - 1) - IF(before < 0, 1, 0) AS entries),
            struct(before_ns AS from_ns, coalesce(then_ns, ends_ns) AS until_ns,
                   CAST(bit_count(IF(ends, shiftrightunsigned(-1L, CAST(63 - last % 64 AS int)), -1L)
                                  & ~(there | IF(block = 0, 1L, 0L))) AS bigint) AS entries)))
        FROM neighbours
        UNION ALL
        SELECT run, at_ns - {LONGEST_EXCHANGE_NS}, at_ns, 0L FROM {{events}}
        WHERE kind IN ('lost', 'unreadable') AND run RLIKE r'{captures.NAMED.pattern}'
    ), numbered AS (
        SELECT run, from_ns, until_ns, entries, row_number() OVER (PARTITION BY run ORDER BY from_ns) - 1 AS nth,
               count(1) OVER (PARTITION BY run) AS total
        FROM missing WHERE entries > 0 OR run RLIKE r'{captures.NAMED.pattern}'
    ), grouped AS (
        SELECT run, sum(entries) AS entries, min(from_ns) AS from_ns, max(until_ns) AS until_ns
        FROM numbered GROUP BY run, nth * least({MAX_GAPS}, total) DIV total
    ), topic_recorders AS (SELECT DISTINCT run, true AS has_topic_events FROM {{events}} WHERE kind = 'topic')
    SELECT run, sum(entries) AS entries,
           collect_list(struct(from_ns, until_ns + IF(coalesce(has_topic_events, false), 0L, {LONGEST_EXCHANGE_NS}) AS until_ns)) AS gaps
    FROM grouped LEFT JOIN topic_recorders USING (run) GROUP BY run"""
"""SQL for the derived table `gaps`: the times at which entries that are missing in a run (a recording) may have occurred.

- Trace of a broker: the entries (requests, events and changes of log offsets) have numbers in the order in which they begin. If a number is missing,
  its entry began between the entries with the next lower and the next higher number.
- Trace of a proxy: as in the trace of a broker, but the missing entry may have begun up to 30 s (`LONGEST_EXCHANGE_NS`) later. A proxy learns of a
  change of topics, brokers or quotas only from the response to a request, and this response may come that much later than the change.
- Capture: the numbers of entries do not show that an entry is missing; only events about lost packets do. Entries may be missing from 30 s before
  such an event until 30 s after it.
"""
ALL = -1
"""The value of the column `acks` for a Produce whose response waits until all in-sync replicas have the records."""
INT32_MAX = 2**31 - 1
READ_COMMITTED = 1
"""The value of the column `isolation` for a Fetch or ListOffsets that reads committed records only."""
NAMED = "coalesce(topic, topic_id) AS where_"
"""SQL: the name of a partition's topic, or the topic id if no response mapped the id to a name."""

CONSUMED = f"""
    WITH followers AS (SELECT run, seq FROM {{requests}} WHERE replica_id >= 0
    ), received AS (
        SELECT *, {NAMED} FROM {{batches}} LEFT ANTI JOIN followers USING (run, seq) WHERE api = 'Fetch'
    ), everywhere AS (
        SELECT run, flatten(collect_list(cuts)) AS cuts FROM (
            SELECT run, cuts FROM {{cuts_of}} WHERE where_ IS NULL UNION ALL SELECT run, gaps FROM {{gaps}})
        GROUP BY run
    ), timed AS (
        SELECT /*+ BROADCAST(o), BROADCAST(e) */ g.*, concat(coalesce(o.cuts, array()), coalesce(e.cuts, array())) AS cuts
        FROM received g LEFT JOIN {{cuts_of}} o ON o.run = g.run AND o.where_ = g.where_ LEFT JOIN everywhere e ON e.run = g.run
    )
    SELECT * EXCEPT (cuts), size(filter(cuts, c -> c.until_ns < begun_ns)) + size(filter(cuts, c -> c.from_ns <= ready_ns)) AS life
    FROM timed"""
"""SQL for the derived table `consumed`: the batches that consumers received.

Batches for followers are left out: a follower may receive records above the high watermark, which may be replaced later. The column `life` is a
number that increases at the start and at the end of each period in which the log may have been truncated or replaced. Two batches of a partition with
the same `life` are from the same log, unless they were received during such a period.
"""
TOPIC_NAMES = """
    SELECT run, topic_id, max(topic) AS name FROM (
        SELECT run, get_json_object(facts, '$.topic') AS topic, get_json_object(facts, '$.topic_id') AS topic_id
        FROM {events} WHERE kind IN ('topic', 'named'))
    WHERE topic IS NOT NULL GROUP BY run, topic_id"""
DERIVED = {
    "settings": SETTINGS,
    "policies": POLICIES,
    "cuts_of": CUTS,
    "states_of": STATES,
    "gaps": GAPS,
    "consumed": CONSUMED,
    "topic_names": TOPIC_NAMES,
}
"""Maps the name of a derived table to the SQL that computes the table. In this SQL, names of tables are in braces, as `Tables.sql` requires."""


class Rule(NamedTuple):
    """A rule of the audit: what must hold in recorded traffic, and the function that checks it.

    check: queries the tables, and returns a row for each case to which the rule applies. The columns of the row are `run`, `seq`, details for the
    reader, `broken` (boolean; null if it cannot be decided) and `excess` (double: by how much the row breaks the rule). Runs (recordings) that lack
    facts for the rule have no rows. If a row can look broken only because the trace lacks entries, `check` must call `Tables.undecided_if_missing`,
    which sets `broken` of such rows to null.
    """

    number: str
    statement: str
    severity: str
    check: Callable[[Tables], DataFrame]


class Outcome(NamedTuple):
    """The result of checking a rule of the audit.

    checked: number of rows for which the rule could be decided. broken: number of rows that break it. worst: the largest excess (by how much a row
    breaks the rule), None if nothing is broken. sample: the broken rows with the largest excess, at most five. left_out: number of rows that look
    broken but cannot be decided, because the trace lacks entries; `checked` does not count them.
    """

    rule: Rule
    checked: int
    broken: int
    worst: float | None
    sample: list[dict[str, Any]]
    left_out: int = 0

    @property
    def query(self) -> dict[str, str]:
        """Return the dotted name (`name`) and the source text (`source`) of the function that checked the rule."""
        check = self.rule.check
        return {"name": f"{check.__module__}.{check.__qualname__}", "source": inspect.getsource(check)}

    def frames_command(self, trace: str) -> str:
        """Return the command, or for a capture the Wireshark filter, with which a user can view the request and response of the worst broken row.

        The worst row is the one with the largest excess. trace: path of the trace, for the command.
        """
        worst = self.sample[0]
        if captures.NAMED.search(worst["run"]):
            return f"{worst['run']}, display filter frame.number == {worst['seq'] // SEQ_PER_PACKET}"
        return f"kafkaproto trace cut {shlex.quote(trace)} --seq {worst['seq']} --out rule-{self.rule.number.replace(' ', '-')}.pcap"

    @property
    def verdict(self) -> str:
        if not self.checked:
            return NOT_EXERCISED
        return BROKEN if self.broken else HOLDS


def outcome(rule: Rule, tables: Tables) -> Outcome:
    rows = rule.check(tables)
    numbers = rows.selectExpr(
        "count(broken) AS checked",
        "count_if(broken IS NULL) AS left_out",
        "count_if(broken) AS broken",
        "max(CASE WHEN broken THEN excess END) AS worst",
    ).first()
    assert numbers is not None
    sample: Sequence[Any] = ()
    if numbers.broken:
        worst_first = rows.where("broken").orderBy(rows.excess.desc_nulls_last(), "run", "seq")
        sample = worst_first.drop("broken").limit(SAMPLE_ROWS).collect()
    return Outcome(
        rule, numbers.checked, numbers.broken, numbers.worst, [row.asDict() for row in sample], numbers.left_out
    )
