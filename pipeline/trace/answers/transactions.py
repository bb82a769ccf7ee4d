"""Queries about transactions: how long each was open, how it ended, and which records it held back from read_committed consumers.

A transaction begins with the first accepted request that belongs to it. In each partition, it holds back its first record and all later records, also
of other producers, until the last stable offset passes them.
"""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import Answer, Query
from kafkaproto.pipeline.trace.answers.groups import STARTS

INTERVALS = 200
"""The report's chart of records that read_committed consumers could not see divides the trace into this number of intervals."""
MAX_LANES, MAX_BARS = 24, 200
"""The report's chart of transactions over time shows at most `MAX_LANES` transactional ids, and at most `MAX_BARS` transactions for each id."""
MAX_TOPICS = 8
"""The report's chart of records that read_committed consumers could not see shows at most this number of topics."""
OPEN = "open at the end"
"""The outcome of a transaction that is still open when the trace ends."""

SPANS = f"""
    {STARTS}, ends_of_runs AS (SELECT run, max(ready_ns) AS run_ends_ns FROM {{requests}} GROUP BY run
    ), ids AS (
        SELECT run, producer_id, max(transactional_id) AS transactional_id FROM (
            SELECT run, coalesce(returned_producer_id, producer_id) AS producer_id, transactional_id FROM {{transactions}} WHERE error = 0)
        WHERE producer_id >= 0 AND transactional_id IS NOT NULL GROUP BY run, producer_id
    ), steps AS (
        SELECT run, seq, producer_id, producer_epoch AS epoch, begun_ns AS at_ns, ready_ns, 'begin' AS step, CAST(NULL AS boolean) AS committed,
               group_id, CAST(NULL AS string) AS topic, CAST(NULL AS int) AS partition, CAST(NULL AS bigint) AS base_offset, 0 AS records
        FROM {{transactions}}
        WHERE api IN ('AddPartitionsToTxn', 'AddOffsetsToTxn', 'TxnOffsetCommit') AND error = 0 AND NOT coalesce(verify_only, false)
        UNION ALL
        SELECT run, seq, producer_id, producer_epoch, begun_ns, ready_ns, 'begin', NULL, NULL, coalesce(topic, topic_id), partition,
               base_offset, count
        FROM {{batches}} WHERE api = 'Produce' AND transactional AND NOT control AND base_offset IS NOT NULL
        UNION ALL
        SELECT run, seq, producer_id, producer_epoch, begun_ns, ready_ns, 'end', committed, NULL, NULL, NULL, NULL, 0
        FROM {{transactions}} WHERE api = 'EndTxn' AND error = 0
    ), numbered AS (
        SELECT *, coalesce(count_if(step = 'end') OVER (
                   PARTITION BY run, producer_id, epoch ORDER BY at_ns, seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS nth
        FROM steps
    ), opened AS (
        SELECT run, producer_id, epoch, nth, min(IF(step = 'begin', at_ns, NULL)) AS opened_ns, max_by(seq, at_ns) AS last_seq,
               max(IF(step = 'end', struct(at_ns, ready_ns, committed), NULL)) AS ended, array_join(collect_set(group_id), ', ') AS groups,
               sum(records) AS records, count(DISTINCT topic, partition) AS partitions
        FROM numbered GROUP BY run, producer_id, epoch, nth HAVING opened_ns IS NOT NULL
    ), fences AS (
        SELECT run, transactional_id, collect_list(begun_ns) AS times_ns FROM {{transactions}}
        WHERE api = 'InitProducerId' AND error IN (0, 51) GROUP BY run, transactional_id
    ), changes AS (
        SELECT run, CAST(get_json_object(facts, '$.producer_id') AS bigint) AS producer_id,
               collect_list(struct(at_ns, get_json_object(facts, '$.state') AS state, get_json_object(facts, '$.cause') AS cause)) AS changes
        FROM {{events}} WHERE kind = 'transaction' GROUP BY run, producer_id
    ), aborts AS (
        SELECT run, producer_id, collect_list(struct(producer_epoch AS epoch, ready_ns)) AS aborts FROM {{batches}}
        WHERE api = 'Fetch' AND control AND NOT committed GROUP BY run, producer_id
    ), known AS (
        SELECT o.*, transactional_id, starts_ns, run_ends_ns,
               array_min(filter(times_ns, t -> t > opened_ns)) AS fenced_ns,
               array_min(filter(changes, c -> c.at_ns > opened_ns AND c.state LIKE 'Prepare%')) AS prepared,
               array_min(filter(changes, c -> c.at_ns > opened_ns AND c.state LIKE 'Complete%')) AS completed,
               array_min(transform(filter(aborts, a -> a.epoch > o.epoch AND a.ready_ns > opened_ns), a -> a.ready_ns)) AS abort_seen_ns
        FROM opened o JOIN starts USING (run) JOIN ends_of_runs USING (run) LEFT JOIN ids USING (run, producer_id)
        LEFT JOIN fences USING (run, transactional_id) LEFT JOIN changes USING (run, producer_id) LEFT JOIN aborts USING (run, producer_id)
    ), spans AS (
        SELECT *, coalesce(ended.ready_ns, prepared.at_ns, least(fenced_ns, abort_seen_ns)) AS closed_ns,
               CASE WHEN ended.committed THEN 'committed' WHEN NOT ended.committed THEN 'aborted'
                    WHEN prepared.cause IS NOT NULL THEN concat('aborted: ', prepared.cause)
                    WHEN fenced_ns <= coalesce(abort_seen_ns, fenced_ns) THEN 'aborted: a newer producer fenced it'
                    WHEN prepared IS NOT NULL OR abort_seen_ns IS NOT NULL THEN 'aborted: its timeout passed, or an admin ended it'
                    ELSE '{OPEN}' END AS outcome
        FROM known
    )"""
"""SQL: CTEs. The CTE `spans` has one row per transaction: when it was opened and closed, and its outcome.

A transaction consists of the accepted requests with one producer id and epoch, up to and including an EndTxn. If there is no EndTxn, the transaction
ends when the trace has a recorded change of its state to PrepareCommit or PrepareAbort, which also has the cause. If there is no such change either,
it ends at the first sign of its abort: an InitProducerId with its transactional id, or the fetch of an abort marker with a newer epoch.
"""

HELD = f"""
    WITH {SPANS}, watermarks AS (
        SELECT run, coalesce(topic, topic_id) AS topic, partition, ready_ns AS at_ns, last_stable_offset AS stable,
               coalesce(high_watermark, next_offset) AS high
        FROM {{partitions}} WHERE error = 0 AND (api = 'Produce' OR api = 'Fetch' AND high_watermark >= 0)
        UNION ALL
        SELECT run, topic, partition, at_ns, last_stable_offset, high_watermark FROM {{state}}
    ), written AS (
        SELECT run, producer_id, epoch, nth, topic, partition, min(base_offset) AS first_offset, min(ready_ns) AS first_ns, sum(records) AS records
        FROM numbered WHERE topic IS NOT NULL GROUP BY ALL
    ), passed AS (
        SELECT *, min(observed_ns) OVER (PARTITION BY run, topic, partition ORDER BY at_offset DESC, turn) AS visible_ns FROM (
            SELECT run, topic, partition, first_offset AS at_offset, 0 AS turn, struct(producer_id, epoch, nth, first_ns, records) AS span,
                   CAST(NULL AS bigint) AS observed_ns FROM written
            UNION ALL SELECT run, topic, partition, stable, 1, NULL, at_ns FROM watermarks WHERE stable >= 0)
    ), reached AS (
        SELECT *, max(high) OVER (PARTITION BY run, topic, partition ORDER BY at_ns, turn) AS high_then FROM (
            SELECT run, topic, partition, coalesce(visible_ns, {2**63 - 1}L) AS at_ns, 0 AS turn, at_offset AS first_offset, span, visible_ns,
                   CAST(NULL AS bigint) AS high FROM passed WHERE turn = 0
            UNION ALL SELECT run, topic, partition, at_ns, 1, NULL, NULL, NULL, high FROM watermarks)
    ), held AS (
        SELECT run, span.producer_id AS producer_id, span.epoch AS epoch, span.nth AS nth, topic, partition, first_offset, span.records AS records,
               span.first_ns AS first_ns, visible_ns, greatest(high_then - first_offset, span.records) AS held_records
        FROM reached WHERE turn = 0
    )"""
"""SQL: CTEs. The CTE `held` has a row for each partition of a transaction: how many records the transaction hid from read_committed consumers.

These consumers read up to the last stable offset, which stays at the start of an open transaction. visible_ns: the time at which the trace first
shows a last stable offset beyond that start; null if it never does. held_records: the number of hidden records, including those of other producers.
This is the larger of two numbers: the number of offsets from the start of the transaction to the highest high watermark that the trace shows until
visible_ns, and the number of records of the transaction itself.
"""

TRANSACTIONS = f"""
    {HELD}, summed AS (
        SELECT run, producer_id, epoch, nth, max(held_records) AS held_records, max(coalesce(visible_ns, run_ends_ns) - first_ns) AS held_ns
        FROM held JOIN ends_of_runs USING (run) GROUP BY run, producer_id, epoch, nth
    )
    SELECT transactional_id, client_id, producer_id, epoch, round((opened_ns - starts_ns) / 1e9, 3) AS opened_s,
           round((coalesce(closed_ns, run_ends_ns) - opened_ns) / 1e6, 3) AS open_ms, outcome,
           round((completed.at_ns - closed_ns) / 1e6, 3) AS completion_ms, partitions, records, groups, held_records,
           round(held_ns / 1e6, 3) AS held_ms
    FROM spans s LEFT JOIN summed USING (run, producer_id, epoch, nth)
    LEFT JOIN (SELECT run, seq AS last_seq, client_id FROM {{requests}}) USING (run, last_seq)
    ORDER BY open_ms DESC, transactional_id, opened_s
"""

PARTITIONS = f"""
    {HELD}
    SELECT topic, partition, count(1) AS transactions, max(held_records) AS max_held_records,
           round(max(coalesce(visible_ns, run_ends_ns) - first_ns) / 1e6, 3) AS longest_ms,
           max_by(transactional_id, coalesce(visible_ns, run_ends_ns) - first_ns) AS longest_of,
           round(min_by(first_ns - starts_ns, first_ns - coalesce(visible_ns, run_ends_ns)) / 1e9, 3) AS longest_from_s,
           count_if(visible_ns IS NULL) AS undecided_at_the_end
    FROM held JOIN spans USING (run, producer_id, epoch, nth) GROUP BY run, topic, partition ORDER BY longest_ms DESC, topic, partition
"""

LANES = f"""
    WITH {SPANS}, lanes AS (
        SELECT *, dense_rank() OVER (ORDER BY longest DESC, name) AS lane,
               row_number() OVER (PARTITION BY run, name ORDER BY opened_ns) AS bar
        FROM (SELECT *, max(coalesce(closed_ns, run_ends_ns) - opened_ns) OVER (PARTITION BY run, name) AS longest
              FROM (SELECT *, coalesce(transactional_id, concat('producer ', producer_id)) AS name FROM spans))
    )
    SELECT name AS transactional_id, round((opened_ns - starts_ns) / 1e9, 3) AS from_s,
           round((coalesce(closed_ns, run_ends_ns) - starts_ns) / 1e9, 3) AS until_s, outcome
    FROM lanes WHERE lane <= {MAX_LANES} AND bar <= {MAX_BARS} ORDER BY lane, from_s
"""

INVISIBLE = f"""
    WITH {STARTS}, observed AS (
        SELECT run, coalesce(topic, topic_id) AS topic, partition, ready_ns AS at_ns, high_watermark - last_stable_offset AS invisible
        FROM {{partitions}} WHERE api = 'Fetch' AND error = 0 AND last_stable_offset >= 0 AND replica_id < 0
        UNION ALL
        SELECT run, topic, partition, at_ns, high_watermark - last_stable_offset FROM {{state}}
    ), span AS (
        SELECT run, starts_ns, greatest(max(ready_ns) - starts_ns, {INTERVALS}) / {INTERVALS} AS width
        FROM {{requests}} JOIN starts USING (run) GROUP BY run, starts_ns
    ), followed AS (
        SELECT run, topic, partition FROM (
            SELECT *, dense_rank() OVER (PARTITION BY run ORDER BY most DESC, topic) AS nth FROM (
                SELECT *, max(invisible) OVER (PARTITION BY run, topic) AS most FROM observed))
        WHERE nth <= {MAX_TOPICS} AND most > 0 GROUP BY run, topic, partition
    ), known AS (
        SELECT run, topic, partition, CAST(greatest(ceil((at_ns - starts_ns) / width), 0) AS int) AS nth,
               max(invisible) AS most, max_by(invisible, at_ns) AS last
        FROM observed JOIN followed USING (run, topic, partition) JOIN span USING (run) GROUP BY ALL
    ), sampled AS (
        SELECT f.run, f.topic, f.partition, f.nth, f.at_s, k.most, k.last FROM (
            SELECT run, topic, partition, nth, round(nth * width / 1e9, 3) AS at_s
            FROM followed JOIN (SELECT run, width, explode(sequence(0, {INTERVALS})) AS nth FROM span) USING (run)) f
        LEFT JOIN known k ON k.run = f.run AND k.topic = f.topic AND k.partition = f.partition AND k.nth = f.nth
    ), filled AS (
        SELECT *, coalesce(most, last(last, true) OVER (PARTITION BY run, topic, partition ORDER BY nth), 0) AS invisible FROM sampled
    )
    SELECT topic, at_s, sum(invisible) AS invisible FROM filled GROUP BY run, topic, nth, at_s ORDER BY topic, at_s
"""

ANSWER = Answer(
    "transactions",
    "Which transactions were open, and which records did they hide from read_committed consumers?",
    (
        Query(
            "transactions",
            "each transaction. open_ms: from its first accepted request until the response to EndTxn, or until it was aborted without EndTxn. "
            "held_records: the most records of one partition that it hid from read_committed consumers, including records of other producers; "
            "held_ms: for how long, as far as the trace shows it; completion_ms: from the end of open_ms until the coordinator completed it. "
            "completion_ms and the exact cause of an abort are known only if a broker of this project recorded the trace",
            TRANSACTIONS,
        ),
        Query(
            "partitions",
            "each partition, with the transaction that hid its records from read_committed consumers for the longest time",
            PARTITIONS,
        ),
        Query(
            "lanes", f"transactions over time of the {MAX_LANES} transactional ids with the longest transactions", LANES
        ),
        Query(
            "invisible",
            "number of records below the high watermark that read_committed consumers could not see, for each topic over time",
            INVISIBLE,
        ),
    ),
)
