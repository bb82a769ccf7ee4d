"""The rule of fetch sessions (KIP-227): which partitions a fetch response must contain, and which session epochs are valid.

The rule compares only columns of the table `requests`, which `kafkaproto.pipeline.trace.sessions` computes from the recorded frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.pipeline.trace.audit.rule import ERROR, HELD, Rule, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INVALID_FETCH_SESSION_EPOCH = 71


def steps(tables: Tables) -> DataFrame:
    """Check that fetch responses in fetch sessions contain the right partitions, and that session epochs are correct.

    Returns one row per response of a fetch session. The response to a full fetch must contain every requested partition. The response to an
    incremental fetch must contain every partition whose high watermark had risen before the fetch. No response may contain a partition that is not in
    the session. The broker must accept the next session epoch and no other.

    Columns:

    - run (the recording), seq (of the fetch), conn, client_id, session_id, session_epoch, error: the fetch.
    - session_expected: the session epoch that the broker expected.
    - requested_partitions: number of partitions that the fetch covers.
    - session_missing: number of missing partitions. session_strays: number of partitions that do not belong to the response.
    - broken: true (a fault); null (undecided) if missing entries may explain the fault.
    - excess: the largest of `session_missing`, `session_strays` and the difference of the epochs.
    """
    rows = tables.sql(f"""
        SELECT r.run, r.seq, r.conn, r.client_id, r.session_id, r.session_epoch, r.session_expected, r.requested_partitions,
               r.session_missing, r.session_strays, r.error,
               coalesce(session_missing, 0) > 0 OR coalesce(session_strays, 0) > 0
                   OR coalesce(session_expected = session_epoch AND error = {INVALID_FETCH_SESSION_EPOCH}, false)
                   OR coalesce(session_expected <> session_epoch AND returned_session_id = session_id AND session_id <> 0, false) AS broken,
               CAST(greatest(session_missing, session_strays, abs(CAST(session_expected AS bigint) - session_epoch), 0) AS double) AS excess,
               ready_ns
        FROM {{requests}} r
        WHERE api = 'Fetch' AND has_response AND NOT {HELD} AND (session_missing IS NOT NULL OR session_expected IS NOT NULL)
    """)
    return tables.undecided_if_missing_before(rows, "ready_ns").drop("ready_ns")


RULES = (
    Rule(
        "17",
        "a fetch session returns every changed partition and no forgotten one, and its epoch grows by one",
        ERROR,
        steps,
    ),
)
