"""What a rule is, and what comes of it. A rule that has checked nothing is "not exercised", and never holds.

Must never know a rule.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.capture import files as captures
from pipeline.capture.conversation import SEQ_PER_PACKET
from pipeline.trace.schema import TABLES
from pipeline.trace.tables import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE_ROWS = 5
ERROR, WARNING = "error", "warning"
HOLDS, BROKEN, NOT_EXERCISED = "holds", "broken", "not exercised"


NAMES = tuple(TABLES)


class Tables:
    """The tables as DataFrames. Made from a folder, or from DataFrames with the same columns. `sql` knows them as audit_requests,
    audit_partitions, audit_batches, audit_events and audit_state, and three more:

    audit_settings: run, broker, window_num, window_s, fetch_max_bytes, policy, selector: of runs whose recorder told them.
    audit_policies: run, where_ (a topic's name), compacts: whether it was ever compacted, of topics of which that is known.
    audit_cuts_of: run, where_ (a topic's name or id, null: every topic), cuts (at_ns): when records may have gone from the end of a log,
    or another log came in the place of one.
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
        for name, query in (("audit_settings", SETTINGS), ("audit_policies", POLICIES), ("audit_cuts_of", CUTS)):
            # Few rows that many rules join: made once.
            self.sql(query).coalesce(1).localCheckpoint().createOrReplaceTempView(name)

    @classmethod
    def of(cls, spark: SparkSession, out: Path) -> Tables:
        return cls(*(read(spark, out, table) for table in NAMES))

    def sql(self, query: str) -> DataFrame:
        return self._spark.sql(query)

    def uncut(self, rows: DataFrame, one_ns: str, other_ns: str) -> DataFrame:
        """Rows of two moments, which have `run`, `where_` and `broken`, without those that are broken where something may have cut the log
        of that topic between the two: they cannot be decided. `where_` becomes `topic`, and the moments go."""
        found = rows
        for which, keys in (("where_ IS NULL", ["run"]), ("where_ IS NOT NULL", ["run", "where_"])):
            cuts = self.sql(f"SELECT {', '.join(keys)}, cuts FROM audit_cuts_of WHERE {which}")
            between = f"exists(cuts, at -> at BETWEEN least({one_ns}, {other_ns}) AND greatest({one_ns}, {other_ns}))"
            joined = found.join(cuts.hint("broadcast"), keys, "left")
            found = joined.where(f"NOT (broken AND coalesce({between}, false))").drop("cuts")
        return found.drop(one_ns, other_ns).withColumnRenamed("where_", "topic")


SETTINGS = """
    WITH told AS (
        SELECT run, explode(from_json(get_json_object(facts, '$.brokers'), 'array<struct<id: int, settings: map<string, string>>>')) AS one
        FROM audit_events WHERE kind = 'meta'
    )
    SELECT run, one.id AS broker, CAST(one.settings['quota.window.num'] AS bigint) AS window_num,
           CAST(one.settings['quota.window.size.seconds'] AS bigint) AS window_s,
           CAST(one.settings['fetch.max.bytes'] AS bigint) AS fetch_max_bytes, one.settings['log.cleanup.policy'] AS policy,
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
    ), cuts AS (
        SELECT run, CASE WHEN kind IN ('broker', 'recovery') THEN NULL ELSE topic END AS where_, at_ns FROM seen
        UNION ALL
        SELECT run, ids.topic_id, at_ns FROM seen JOIN ids USING (run, topic) WHERE kind NOT IN ('broker', 'recovery')
        UNION ALL
        SELECT run, NULL, explode(array(coalesce(handled_ns, received_ns), ready_ns)) FROM audit_requests WHERE api = 'DeleteTopics'
    )
    SELECT run, where_, collect_list(at_ns) AS cuts FROM cuts GROUP BY run, where_"""
FIRST_NEVER_HELD = 8
HELD = f"coalesce(held, api_version < {FIRST_NEVER_HELD} AND coalesce(throttle_ms, 1) > 0)"
"""Whether a Fetch may have been answered late for its throttle, and with all that it asked for. Where only a broker could tell: who answers this
version is of release 2.0 or later, which keeps nothing back (KIP-219); one before it may."""
ALL = -1
"""acks of a Produce: every replica in sync has it before it is answered."""
NAMED = "coalesce(topic, topic_id) AS where_"
"""What a partition is known by: its topic's name, or the id where nobody said whose that is."""


ALL_TOLD = "LEFT ANTI JOIN (SELECT run FROM audit_events WHERE kind = 'dropped') USING (run)"
"""Behind a FROM: only runs of which nothing was dropped, for what must not miss an entry."""


class Rule(NamedTuple):
    """check: every row that the rule can decide, with `broken` (boolean), `excess` (double: how far off) and what a reader wants to see,
    `run` and `seq` first. It reads `Tables.sql` and asks nothing of a run that its recorder could not know."""

    number: str
    statement: str
    severity: str
    check: Callable[[Tables], DataFrame]


class Outcome(NamedTuple):
    """worst: the largest excess, None where nothing is broken. sample: the worst rows, at most `SAMPLE_ROWS`."""

    rule: Rule
    checked: int
    broken: int
    worst: float | None
    sample: list[dict[str, Any]]

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
        "count(1) AS checked",
        "count_if(broken) AS broken",
        "max(CASE WHEN broken THEN excess END) AS worst",
    ).first()
    assert numbers is not None
    sample: Sequence[Any] = ()
    if numbers.broken:
        worst_first = rows.where("broken").orderBy(rows.excess.desc_nulls_last(), "run", "seq")
        sample = worst_first.drop("broken").limit(SAMPLE_ROWS).collect()
    return Outcome(rule, numbers.checked, numbers.broken, numbers.worst, [row.asDict() for row in sample])
