"""What a rule is, and what comes of it. A rule that has checked nothing is "not exercised", and never holds.

Must never know a rule.
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
    """The tables of a trace as DataFrames, and six small ones derived from them. A query names them in braces, and `sql` gives it the DataFrames.

    Two objects share nothing but the Spark session, and several threads may query one object.

    requests, partitions, batches, events, state: see `kafkaproto.pipeline.trace.schema`. A table that is not given is empty.
    settings: run, broker, window_num, window_s, fetch_max_bytes, policy, selector: of runs whose recorder reported them.
    policies: run, where_ (a topic's name), compacts: whether it was ever compacted, of topics of which that is known.
    cuts_of: run, where_ (a topic's name or id, null: every topic), cuts (from_ns, until_ns): when a log may have been truncated, or replaced by
    another one.
    states_of: run, where_ (a topic's name), partition, states (at_ns, seq, leader, isr; null if not reported), ordered by time: of runs that
    report leaders and in-sync replicas.
    consumed: the batches that consumers received, with where_, and life: batches of different lives may belong to different logs.
    gaps: run, entries (number of missing entries, 0: unknown), gaps (from_ns, until_ns): when the missing entries may have happened. Complete
    runs are not in it.
    """

    def __init__(
        self,
        requests: DataFrame | None = None,
        partitions: DataFrame | None = None,
        batches: DataFrame | None = None,
        events: DataFrame | None = None,
        state: DataFrame | None = None,
    ) -> None:
        """Raises ValueError if no table is given."""
        given = (requests, partitions, batches, events, state)
        spark = next((frame.sparkSession for frame in given if frame is not None), None)
        if spark is None:
            raise ValueError(f"at least one of the tables must be given: {', '.join(NAMES)}")
        self._spark = spark
        self.requests, self.partitions, self.batches, self.events, self.state = (
            spark.createDataFrame([], ddl(name)) if frame is None else frame
            for name, frame in zip(NAMES, given, strict=True)
        )
        self._frames: dict[str, DataFrame] = {name: getattr(self, name) for name in NAMES}
        self._deriving = RLock()
        self._complete: bool | None = None

    @classmethod
    def of(cls, spark: SparkSession, out: Path) -> Tables:
        """Read the tables in the folder `out`."""
        return cls(*(read(spark, out, table) for table in NAMES))

    def sql(self, query: str, **more: DataFrame) -> DataFrame:
        """Run a query that names tables in braces: `SELECT run FROM {requests}`. Other braces in it are doubled, as for `str.format`.

        more: DataFrames for further names. Raises KeyError for a name that is neither a table nor in `more`, and what Spark raises.
        """
        names = {name for _, name, _, _ in Formatter().parse(query) if name}
        # Spark makes a view for each frame and drops it. Spark 4.0 then also uncaches the plan of the view: a filter, which the optimizer
        # removes, makes that another plan than the frame's own.
        views = {name: (more[name] if name in more else self.table(name)).where("true") for name in names}
        return self._spark.sql(query, None, **views)

    def table(self, name: str) -> DataFrame:
        """Return a table by its name, and derive it if nobody has used it before. Raises KeyError for an unknown name."""
        with self._deriving:
            if name not in self._frames:
                rows = self.sql(DERIVED[name])
                # All but the batches are few rows that many rules join: computed once.
                self._frames[name] = rows if name == "consumed" else rows.coalesce(1).localCheckpoint()
            return self._frames[name]

    @property
    def is_complete(self) -> bool:
        """Whether no run lacks an entry."""
        with self._deriving:
            if self._complete is None:
                self._complete = self.table("gaps").isEmpty()
            return self._complete

    def uncut(self, rows: DataFrame, one_ns: str, other_ns: str) -> DataFrame:
        """Rows of two moments, which have `run`, `where_` and `broken`, without those that are broken where something may have cut the log
        of that topic between the two: they cannot be decided, as those where a cut may be missing. `where_` becomes `topic`, and the
        moments go."""
        found = self.whole(rows, one_ns, other_ns)
        for which, keys in (("where_ IS NULL", ["run"]), ("where_ IS NOT NULL", ["run", "where_"])):
            cuts = self.table("cuts_of").where(which).select(*keys, "cuts")
            between = f"exists(cuts, c -> c.from_ns <= greatest({one_ns}, {other_ns}) AND c.until_ns >= least({one_ns}, {other_ns}))"
            joined = found.join(cuts.hint("broadcast"), keys, "left")
            found = joined.where(f"NOT (broken AND coalesce({between}, false))").drop("cuts")
        return found.drop(one_ns, other_ns).withColumnRenamed("where_", "topic")

    def whole(self, rows: DataFrame, one_ns: str, other_ns: str) -> DataFrame:
        """Rows that have `run` and `broken`, which becomes null (not decided) where it is true and the run lacks what may have happened
        between two moments: expressions, null where nothing that is missing could explain the row."""
        if self.is_complete:
            return rows
        lacks = f"exists(gaps, g -> g.from_ns <= greatest({one_ns}, {other_ns}) AND g.until_ns >= least({one_ns}, {other_ns}))"
        asked = f"({one_ns}) IS NOT NULL AND ({other_ns}) IS NOT NULL"
        gaps = self.table("gaps").select("run", "gaps")
        found = rows.join(gaps.hint("broadcast"), "run", "left")
        decided = f"CASE WHEN broken AND {asked} AND coalesce({lacks}, false) THEN NULL ELSE broken END AS broken"
        return found.selectExpr("* EXCEPT (broken, gaps)", decided)

    def whole_before(self, rows: DataFrame, then_ns: str) -> DataFrame:
        """The same of all that happened before a moment."""
        return self.whole(rows, f"IF(({then_ns}) IS NULL, NULL, {NEVER_NS})", then_ns)


SETTINGS = """
    WITH told AS (
        SELECT run, explode(from_json(get_json_object(facts, '$.brokers'), 'array<struct<id: int, settings: map<string, string>>>')) AS one
        FROM {events} WHERE kind = 'meta'
    )
    SELECT run, one.id AS broker, try_cast(one.settings['quota.window.num'] AS bigint) AS window_num,
           try_cast(one.settings['quota.window.size.seconds'] AS bigint) AS window_s,
           try_cast(one.settings['fetch.max.bytes'] AS bigint) AS fetch_max_bytes, one.settings['log.cleanup.policy'] AS policy,
           one.settings['replica.selector.class'] AS selector
    FROM told WHERE one.settings IS NOT NULL"""
POLICIES = """
    WITH told AS (
        SELECT run, get_json_object(facts, '$.topic') AS where_,
               max(coalesce(from_json(facts, 'configs map<string, string>').configs['cleanup.policy'] LIKE '%compact%', false)) AS compacts
        FROM {events} WHERE kind = 'topic' GROUP BY run, get_json_object(facts, '$.topic')
    ), defaults AS (SELECT run, max(policy LIKE '%compact%') AS compacts FROM {settings} GROUP BY run)
    SELECT told.run, where_, told.compacts OR defaults.compacts AS compacts FROM told JOIN defaults USING (run)
    WHERE told.compacts OR defaults.compacts IS NOT NULL"""
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
"""Who is not told of topics learns from answers that a name has another id: something was between the last that had the old one and that."""
STATES = """
    WITH stated AS (
        SELECT run, at_ns, seq, topic, place AS partition, one.leader AS leader, one.isr AS isr FROM (
            SELECT run, at_ns, seq, get_json_object(facts, '$.topic') AS topic,
                   posexplode(from_json(get_json_object(facts, '$.partitions'), 'array<struct<leader: int, isr: array<int>>>')) AS (place, one)
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
"""Whether a Fetch may have been answered late for its throttle, and with all that it asked for. Where only a broker could tell: who answers this
version is of release 2.0 or later, which keeps nothing back (KIP-219); one before it may."""
NEVER_NS, EVER_NS = "0L", f"{2**63 - 1}L"
"""Before and behind all that a run may hold."""
LASTS_NS = 30_000_000_000
"""How long an exchange that is missing may have been under way, where only its answer tells that it was done: what clients wait at most."""
MOST_GAPS = 256
"""Of a run: more are put together, as each row that a rule asks about is compared with all."""
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
        SELECT run, at_ns - {LASTS_NS}, at_ns, 0L FROM {{events}}
        WHERE kind IN ('lost', 'unreadable') AND run RLIKE r'{captures.NAMED.pattern}'
    ), numbered AS (
        SELECT run, from_ns, until_ns, entries, row_number() OVER (PARTITION BY run ORDER BY from_ns) - 1 AS nth,
               count(1) OVER (PARTITION BY run) AS total
        FROM missing WHERE entries > 0 OR run RLIKE r'{captures.NAMED.pattern}'
    ), grouped AS (
        SELECT run, sum(entries) AS entries, min(from_ns) AS from_ns, max(until_ns) AS until_ns
        FROM numbered GROUP BY run, nth * least({MOST_GAPS}, total) DIV total
    ), telling AS (SELECT DISTINCT run, true AS tells FROM {{events}} WHERE kind = 'topic')
    SELECT run, sum(entries) AS entries,
           collect_list(struct(from_ns, until_ns + IF(coalesce(tells, false), 0L, {LASTS_NS}) AS until_ns)) AS gaps
    FROM grouped LEFT JOIN telling USING (run) GROUP BY run"""
"""Entries are counted as what they tell of begins, so one that is missing began between those before and behind it. Who is told of
topics, brokers and quotas counts each change when it comes; who is not knows of it by an exchange. Of a capture, whose entries are
counted otherwise, holes are known; what is behind a hole tells of it."""
ALL = -1
"""acks of a Produce: every replica in sync has it before it is answered."""
INT32_MAX = 2**31 - 1
READ_COMMITTED = 1
"""isolation of a Fetch or ListOffsets."""
NAMED = "coalesce(topic, topic_id) AS where_"
"""What a partition is known by: its topic's name, or the id where nobody said whose that is."""


CONSUMED = f"""
    WITH followers AS (SELECT run, seq FROM {{requests}} WHERE replica_id >= 0
    ), got AS (
        SELECT *, {NAMED} FROM {{batches}} LEFT ANTI JOIN followers USING (run, seq) WHERE api = 'Fetch'
    ), every AS (
        SELECT run, flatten(collect_list(cuts)) AS cuts FROM (
            SELECT run, cuts FROM {{cuts_of}} WHERE where_ IS NULL UNION ALL SELECT run, gaps FROM {{gaps}})
        GROUP BY run
    ), timed AS (
        SELECT /*+ BROADCAST(o), BROADCAST(e) */ g.*, concat(coalesce(o.cuts, array()), coalesce(e.cuts, array())) AS cuts
        FROM got g LEFT JOIN {{cuts_of}} o ON o.run = g.run AND o.where_ = g.where_ LEFT JOIN every e ON e.run = g.run
    )
    SELECT * EXCEPT (cuts), size(filter(cuts, c -> c.until_ns < begun_ns)) + size(filter(cuts, c -> c.from_ns <= ready_ns)) AS life
    FROM timed"""
"""What consumers get stays; what a follower gets may be above the high watermark, and others take its place. A life is what lies between two
cuts, as is what was got while a cut may have been."""
DERIVED = {
    "settings": SETTINGS,
    "policies": POLICIES,
    "cuts_of": CUTS,
    "states_of": STATES,
    "gaps": GAPS,
    "consumed": CONSUMED,
}
"""Maps a derived table to its query."""


class Rule(NamedTuple):
    """check: every row that the rule can decide, with `broken` (boolean), `excess` (double: how far off) and what a reader wants to see,
    `run` and `seq` first. It queries `Tables.sql` and asks nothing of a run that its recorder could not know. Where only what came before
    tells whether a row is broken, `Tables.whole` has a look at whether that is there."""

    number: str
    statement: str
    severity: str
    check: Callable[[Tables], DataFrame]


class Outcome(NamedTuple):
    """worst: the largest excess, None where nothing is broken. sample: the worst rows, at most `SAMPLE_ROWS`. left_out: rows that look
    broken, and may not be, as entries are missing: they are not among the checked ones."""

    rule: Rule
    checked: int
    broken: int
    worst: float | None
    sample: list[dict[str, Any]]
    left_out: int = 0

    @property
    def query(self) -> dict[str, str]:
        """Where the number comes from: the dotted name of the rule's function, and its text."""
        check = self.rule.check
        return {"name": f"{check.__module__}.{check.__qualname__}", "source": inspect.getsource(check)}

    def how_to_see(self, trace: str) -> str:
        """Where the frames of the worst row are. trace: its path."""
        worst = self.sample[0]
        if captures.NAMED.search(worst["run"]):
            return f"Wireshark, {worst['run']}, frame.number == {worst['seq'] // SEQ_PER_PACKET}"
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
