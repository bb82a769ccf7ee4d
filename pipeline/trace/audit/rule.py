"""What a rule is, and what comes of it. A rule that has checked nothing is "not exercised", and never holds.

Must never know a rule.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.pipeline.capture import files as captures
from kafkaproto.pipeline.capture.conversation import SEQ_PER_PACKET
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.pipeline.trace.tables import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE_ROWS = 5
ERROR, WARNING = "error", "warning"
HOLDS, BROKEN, NOT_EXERCISED = "holds", "broken", "not exercised"


NAMES = tuple(TABLES)


class Tables:
    """The tables as DataFrames. Made from a folder, or from DataFrames with the same columns. `sql` knows them as audit_requests,
    audit_partitions, audit_batches, audit_events and audit_state, and six more:

    audit_settings: run, broker, window_num, window_s, fetch_max_bytes, policy, selector: of runs whose recorder told them.
    audit_policies: run, where_ (a topic's name), compacts: whether it was ever compacted, of topics of which that is known.
    audit_cuts_of: run, where_ (a topic's name or id, null: every topic), cuts (from_ns, until_ns): when records may have gone from the end of
    a log, or another log came in the place of one.
    audit_states_of: run, where_ (a topic's name), partition, states (at_ns, seq, leader, isr; null where that was not told), as they came: of
    runs that are told who leads, and who is in sync.
    audit_consumed: batches that consumers got, with where_, and life: what was got in two lives may be of two logs.
    audit_gaps: run, entries (how many are missing, 0: nobody knows), gaps (from_ns, until_ns): when what a run lacks may have happened.
    Runs that lack nothing are not in it.
    """

    def __init__(
        self, requests: DataFrame, partitions: DataFrame, batches: DataFrame, events: DataFrame, state: DataFrame
    ) -> None:
        self.requests = requests
        self.partitions = partitions
        self.batches = batches
        self.events = events
        self.state = state
        self._spark = requests.sparkSession
        for name in NAMES:
            getattr(self, name).createOrReplaceTempView(f"audit_{name}")
        for name, query in (
            ("audit_settings", SETTINGS),
            ("audit_policies", POLICIES),
            ("audit_cuts_of", CUTS),
            ("audit_states_of", STATES),
            ("audit_gaps", GAPS),
        ):
            # Few rows that many rules join: made once.
            self.sql(query).coalesce(1).localCheckpoint().createOrReplaceTempView(name)
        self.sql(CONSUMED).createOrReplaceTempView("audit_consumed")
        self._whole = self.sql("SELECT run FROM audit_gaps").isEmpty()

    @classmethod
    def of(cls, spark: SparkSession, out: Path) -> Tables:
        return cls(*(read(spark, out, table) for table in NAMES))

    def sql(self, query: str) -> DataFrame:
        return self._spark.sql(query)

    def uncut(self, rows: DataFrame, one_ns: str, other_ns: str) -> DataFrame:
        """Rows of two moments, which have `run`, `where_` and `broken`, without those that are broken where something may have cut the log
        of that topic between the two: they cannot be decided, as those where a cut may be missing. `where_` becomes `topic`, and the
        moments go."""
        found = self.whole(rows, one_ns, other_ns)
        for which, keys in (("where_ IS NULL", ["run"]), ("where_ IS NOT NULL", ["run", "where_"])):
            cuts = self.sql(f"SELECT {', '.join(keys)}, cuts FROM audit_cuts_of WHERE {which}")
            between = f"exists(cuts, c -> c.from_ns <= greatest({one_ns}, {other_ns}) AND c.until_ns >= least({one_ns}, {other_ns}))"
            joined = found.join(cuts.hint("broadcast"), keys, "left")
            found = joined.where(f"NOT (broken AND coalesce({between}, false))").drop("cuts")
        return found.drop(one_ns, other_ns).withColumnRenamed("where_", "topic")

    def whole(self, rows: DataFrame, one_ns: str, other_ns: str) -> DataFrame:
        """Rows that have `run` and `broken`, which becomes null (not decided) where it is true and the run lacks what may have happened
        between two moments: expressions, null where nothing that is missing could explain the row."""
        if self._whole:
            return rows
        lacks = f"exists(gaps, g -> g.from_ns <= greatest({one_ns}, {other_ns}) AND g.until_ns >= least({one_ns}, {other_ns}))"
        asked = f"({one_ns}) IS NOT NULL AND ({other_ns}) IS NOT NULL"
        found = rows.join(self.sql("SELECT run, gaps FROM audit_gaps").hint("broadcast"), "run", "left")
        decided = f"CASE WHEN broken AND {asked} AND coalesce({lacks}, false) THEN NULL ELSE broken END AS broken"
        return found.selectExpr("* EXCEPT (broken, gaps)", decided)

    def whole_before(self, rows: DataFrame, then_ns: str) -> DataFrame:
        """The same of all that happened before a moment."""
        return self.whole(rows, f"IF(({then_ns}) IS NULL, NULL, {NEVER_NS})", then_ns)


SETTINGS = """
    WITH told AS (
        SELECT run, explode(from_json(get_json_object(facts, '$.brokers'), 'array<struct<id: int, settings: map<string, string>>>')) AS one
        FROM audit_events WHERE kind = 'meta'
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
        FROM audit_events WHERE kind = 'topic' GROUP BY run, get_json_object(facts, '$.topic')
    ), defaults AS (SELECT run, max(policy LIKE '%compact%') AS compacts FROM audit_settings GROUP BY run)
    SELECT told.run, where_, told.compacts OR defaults.compacts AS compacts FROM told JOIN defaults USING (run)
    WHERE told.compacts OR defaults.compacts IS NOT NULL"""
CUTS = """
    WITH seen AS (
        SELECT run, at_ns, kind, get_json_object(facts, '$.topic') AS topic, get_json_object(facts, '$.topic_id') AS topic_id
        FROM audit_events
        WHERE kind IN ('broker', 'recovery', 'leader')
           OR kind = 'log' AND get_json_object(facts, '$.what') <> 'start'
           OR kind = 'topic' AND get_json_object(facts, '$.state') IN ('deleted', 'created')
    ), ids AS (
        SELECT DISTINCT run, get_json_object(facts, '$.topic') AS topic, get_json_object(facts, '$.topic_id') AS topic_id
        FROM audit_events WHERE kind IN ('topic', 'named')
    ), named AS (
        SELECT run, get_json_object(facts, '$.topic') AS topic, get_json_object(facts, '$.topic_id') AS topic_id, at_ns,
               CAST(get_json_object(facts, '$.begun_ns') AS bigint) AS begun_ns, broker, seq
        FROM audit_events LEFT ANTI JOIN (SELECT run FROM audit_events WHERE kind = 'topic') USING (run) WHERE kind = 'named'
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
        FROM audit_partitions p JOIN renamed n ON p.run = n.run AND p.topic_id = n.topic_id AND p.begun_ns < n.at_ns
        WHERE p.error = 0 GROUP BY p.run, p.topic_id, n.at_ns
    ), cuts AS (
        SELECT run, CASE WHEN kind IN ('broker', 'recovery') THEN NULL ELSE topic END AS where_, at_ns AS from_ns, at_ns AS until_ns FROM seen
        UNION ALL
        SELECT run, ids.topic_id, at_ns, at_ns FROM seen JOIN ids USING (run, topic) WHERE kind NOT IN ('broker', 'recovery')
        UNION ALL
        SELECT run, topic, greatest(renamed.begun_ns, sighted.begun_ns), at_ns FROM renamed LEFT JOIN sighted USING (run, topic_id, at_ns)
        UNION ALL
        SELECT run, NULL, coalesce(handled_ns, received_ns), ready_ns FROM audit_requests WHERE api = 'DeleteTopics'
    )
    SELECT run, where_, collect_list(struct(from_ns, until_ns)) AS cuts FROM cuts GROUP BY run, where_"""
"""Who is not told of topics learns from answers that a name has another id: something was between the last that had the old one and that."""
STATES = """
    WITH stated AS (
        SELECT run, at_ns, seq, topic, place AS partition, one.leader AS leader, one.isr AS isr FROM (
            SELECT run, at_ns, seq, get_json_object(facts, '$.topic') AS topic,
                   posexplode(from_json(get_json_object(facts, '$.partitions'), 'array<struct<leader: int, isr: array<int>>>')) AS (place, one)
            FROM audit_events WHERE kind = 'topic' AND get_json_object(facts, '$.state') <> 'deleted')
        UNION ALL
        SELECT run, at_ns, seq, get_json_object(facts, '$.topic'), CAST(get_json_object(facts, '$.partition') AS int),
               CASE WHEN kind = 'leader' THEN CAST(get_json_object(facts, '$.leader') AS int) END,
               CASE WHEN kind = 'isr' THEN from_json(get_json_object(facts, '$.isr'), 'array<int>') END
        FROM audit_events WHERE kind IN ('leader', 'isr')
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
        SELECT run, seq, coalesce(handled_ns, received_ns) AS at_ns FROM audit_requests
        UNION ALL SELECT run, seq, at_ns FROM audit_events WHERE kind NOT IN ('named', 'rack')
        UNION ALL SELECT run, seq, at_ns FROM audit_state
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
        SELECT run, at_ns - {LASTS_NS}, at_ns, 0L FROM audit_events
        WHERE kind IN ('lost', 'unreadable') AND run RLIKE r'{captures.NAMED.pattern}'
    ), numbered AS (
        SELECT run, from_ns, until_ns, entries, row_number() OVER (PARTITION BY run ORDER BY from_ns) - 1 AS nth,
               count(1) OVER (PARTITION BY run) AS total
        FROM missing WHERE entries > 0 OR run RLIKE r'{captures.NAMED.pattern}'
    ), grouped AS (
        SELECT run, sum(entries) AS entries, min(from_ns) AS from_ns, max(until_ns) AS until_ns
        FROM numbered GROUP BY run, nth * least({MOST_GAPS}, total) DIV total
    ), telling AS (SELECT DISTINCT run, true AS tells FROM audit_events WHERE kind = 'topic')
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
    WITH followers AS (SELECT run, seq FROM audit_requests WHERE replica_id >= 0
    ), got AS (
        SELECT *, {NAMED} FROM audit_batches LEFT ANTI JOIN followers USING (run, seq) WHERE api = 'Fetch'
    ), every AS (
        SELECT run, flatten(collect_list(cuts)) AS cuts FROM (
            SELECT run, cuts FROM audit_cuts_of WHERE where_ IS NULL UNION ALL SELECT run, gaps FROM audit_gaps)
        GROUP BY run
    ), timed AS (
        SELECT /*+ BROADCAST(o), BROADCAST(e) */ g.*, concat(coalesce(o.cuts, array()), coalesce(e.cuts, array())) AS cuts
        FROM got g LEFT JOIN audit_cuts_of o ON o.run = g.run AND o.where_ = g.where_ LEFT JOIN every e ON e.run = g.run
    )
    SELECT * EXCEPT (cuts), size(filter(cuts, c -> c.until_ns < begun_ns)) + size(filter(cuts, c -> c.from_ns <= ready_ns)) AS life
    FROM timed"""
"""What consumers get stays; what a follower gets may be above the high watermark, and others take its place. A life is what lies between two
cuts, as is what was got while a cut may have been."""


class Rule(NamedTuple):
    """check: every row that the rule can decide, with `broken` (boolean), `excess` (double: how far off) and what a reader wants to see,
    `run` and `seq` first. It reads `Tables.sql` and asks nothing of a run that its recorder could not know. Where only what came before
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
