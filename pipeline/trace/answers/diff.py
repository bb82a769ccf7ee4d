"""Queries that compare two recorded runs: differences of versions, counts, sizes, errors and latencies that exceed noise.

They show the effect of a change of a client or a broker. Numbers and UUIDs in client ids are ignored.
"""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import FAMILY, GIVEN_UP, Answer, Query

MIN_REQUESTS = 30
"""The number of requests that each run (recording) needs before sizes and times are compared."""
COUNTS_DIFFER, TIMES_DIFFER, SIZES_DIFFER = 1.25, 1.5, 1.25
"""Three factors, for counts, times and sizes, from which on a difference between two runs (recordings) is reported.

The larger count, time or size must be at least this many times the smaller one.
"""
MIN_DIFFERENCE_MS = 1.0
"""The smallest difference of times that is reported, in ms. Smaller differences are noise."""


def answer(before: str, after: str) -> Answer:
    """Return the answer that compares two runs (recordings) in the same tables. before, after: the names of the runs."""
    runs = f"CASE run WHEN '{_quoted(before)}' THEN 'before' WHEN '{_quoted(after)}' THEN 'after' END"
    both = f"""
    WITH both AS (
        SELECT *, {runs} AS side, {FAMILY} AS client FROM {{requests}} WHERE run IN ('{_quoted(before)}', '{_quoted(after)}') AND api IS NOT NULL
    )"""
    pairs = "count_if(side = 'before') AS before, count_if(side = 'after') AS after"
    versions = f"""{both}
    SELECT client, api, api_version, {pairs}, CASE WHEN count_if(side = 'before') = 0 THEN 'new' ELSE 'removed' END AS change
    FROM both GROUP BY client, api, api_version HAVING before = 0 OR after = 0 ORDER BY client, api, api_version
    """
    counts = f"""{both}
    SELECT client, api, {pairs}, round(count_if(side = 'after') / nullif(count_if(side = 'before'), 0), 2) AS ratio
    FROM both GROUP BY client, api
    HAVING before > 0 AND after > 0 AND abs(after - before) > 10 AND greatest(after / nullif(before, 0), before / nullif(after, 0)) >= {COUNTS_DIFFER}
    ORDER BY greatest(after / nullif(before, 0), before / nullif(after, 0)) DESC, client, api
    """
    errors = f"""{both}
    SELECT client, api, error, {pairs} FROM both WHERE error <> 0 GROUP BY client, api, error
    HAVING before = 0 OR after = 0 OR greatest(after / nullif(before, 0), before / nullif(after, 0)) >= 2 ORDER BY client, api, error
    """
    measures = f"""{both}, measured AS (
        SELECT api, side, count(1) AS requests, percentile_approx((ready_ns - received_ns) / 1e6, array(0.5, 0.95), 1000) AS ms,
               percentile_approx(bytes_in, array(0.5, 0.95), 1000) AS bytes_in, percentile_approx(bytes_out, array(0.5, 0.95), 1000) AS bytes_out
        FROM both WHERE NOT ({GIVEN_UP}) GROUP BY api, side
    ), paired AS (
        SELECT b.api, b.requests AS before_requests, a.requests AS after_requests, stack(6,
                 'p50 ms', b.ms[0], a.ms[0], 'p95 ms', b.ms[1], a.ms[1],
                 'p50 bytes in', CAST(b.bytes_in[0] AS double), CAST(a.bytes_in[0] AS double),
                 'p95 bytes in', CAST(b.bytes_in[1] AS double), CAST(a.bytes_in[1] AS double),
                 'p50 bytes out', CAST(b.bytes_out[0] AS double), CAST(a.bytes_out[0] AS double),
                 'p95 bytes out', CAST(b.bytes_out[1] AS double), CAST(a.bytes_out[1] AS double)) AS (measure, before, after)
        FROM measured b JOIN measured a ON a.api = b.api AND b.side = 'before' AND a.side = 'after'
        WHERE least(b.requests, a.requests) >= {MIN_REQUESTS}
    )
    SELECT api, measure, round(before, 3) AS before, round(after, 3) AS after, round(after / nullif(before, 0), 2) AS ratio
    FROM paired WHERE CASE WHEN measure LIKE '%ms' THEN abs(after - before) >= {MIN_DIFFERENCE_MS}
                             AND greatest(after / nullif(before, 0), before / nullif(after, 0), 0) >= {TIMES_DIFFER}
                           ELSE greatest(after / nullif(before, 0), before / nullif(after, 0), 0) >= {SIZES_DIFFER} END
    ORDER BY api, measure
    """
    again = f"""{both}, fetched AS (
        SELECT b.side, b.client, count(1) - count(DISTINCT coalesce(p.topic, p.topic_id), p.partition, p.requested_offset) AS repeats
        FROM both b JOIN {{partitions}} p ON p.run = b.run AND p.seq = b.seq
        WHERE p.api = 'Fetch' AND p.requested_offset IS NOT NULL AND p.records > 0
        GROUP BY b.side, b.client
    )
    SELECT client, max(CASE side WHEN 'before' THEN repeats END) AS before, max(CASE side WHEN 'after' THEN repeats END) AS after
    FROM fetched GROUP BY client HAVING before <> after ORDER BY client
    """
    return Answer(
        "diff",
        f"What differs between the recordings {before} (before) and {after} (after)?",
        (
            Query("versions", "API versions that a client uses in only one of the two recordings", versions),
            Query("counts", f"numbers of requests that differ by a factor of at least {COUNTS_DIFFER}", counts),
            Query(
                "measures",
                f"quantiles of times that differ by a factor of at least {TIMES_DIFFER} and by at least {MIN_DIFFERENCE_MS:g} ms, and of "
                f"sizes that differ by a factor of at least {SIZES_DIFFER}",
                measures,
            ),
            Query(
                "errors",
                "error codes that occur in only one recording, or at least twice as often in one as in the other",
                errors,
            ),
            Query(
                "again",
                "number of fetches that returned records from the same offset as an earlier fetch, if it differs",
                again,
            ),
        ),
    )


def _quoted(run: str) -> str:
    """Return the name of a run (a recording), escaped for a string literal in a query of `Tables.sql`."""
    literal = run.replace("\\", "\\\\").replace("'", "\\'")
    return literal.replace("{", "{{").replace("}", "}}")
