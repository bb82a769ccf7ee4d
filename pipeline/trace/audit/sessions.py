"""The rule of fetch sessions (KIP-227). What was asked in each step, and what was due, stands in the columns of the requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ERROR, HELD, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INVALID_FETCH_SESSION_EPOCH = 71


def steps(tables: Tables) -> DataFrame:
    """A full answer has each partition, an incremental one each whose high watermark had moved when it was asked for, and both have none
    that was not asked for, or was forgotten. The step that comes next is taken, and no other."""
    rows = tables.sql(f"""
        SELECT r.run, r.seq, r.conn, r.client_id, r.session_id, r.session_epoch, r.session_expected, r.asked_partitions,
               r.session_missing, r.session_strays, r.error,
               coalesce(session_missing, 0) > 0 OR coalesce(session_strays, 0) > 0
                   OR coalesce(session_expected = session_epoch AND error = {INVALID_FETCH_SESSION_EPOCH}, false)
                   OR coalesce(session_expected <> session_epoch AND answered_session_id = session_id AND session_id <> 0, false) AS broken,
               CAST(greatest(session_missing, session_strays, abs(CAST(session_expected AS bigint) - session_epoch), 0) AS double) AS excess,
               ready_ns
        FROM {{requests}} r
        WHERE api = 'Fetch' AND answered AND NOT {HELD} AND (session_missing IS NOT NULL OR session_expected IS NOT NULL)
    """)
    return tables.whole_before(rows, "ready_ns").drop("ready_ns")


RULES = (
    Rule(
        "17", "a fetch session misses no partition, keeps none that was forgotten, and goes step by step", ERROR, steps
    ),
)
