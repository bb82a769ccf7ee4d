"""Queries about the lag of each group: the difference between the end of a partition and the group's committed offset."""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import Answer, Query
from kafkaproto.pipeline.trace.answers.groups import STARTS

INTERVALS = 100
"""The report's chart of lag over time divides the trace into this number of intervals of equal length."""
MAX_PARTITIONS = 500
"""The report's chart of lag over time adds up the lags of at most this number of partitions of a group: those with the most commits."""

POSITIONS = f"""
    {STARTS}, commits AS (
        SELECT run, group_id, coalesce(topic, name, topic_id) AS topic, partition, offset, ready_ns AS at_ns
        FROM {{group_offsets}} LEFT JOIN {{topic_names}} USING (run, topic_id)
        WHERE api <> 'OffsetDelete' AND error = 0 AND offset >= 0
    ), ends AS (
        SELECT run, coalesce(topic, topic_id) AS topic, partition, ready_ns AS at_ns, IF(api = 'Produce', next_offset, high_watermark) AS end
        FROM {{partitions}}
        WHERE error = 0 AND (api = 'Produce' AND next_offset IS NOT NULL OR api = 'Fetch' AND high_watermark >= 0)
    )"""

PARTITIONS = f"""
    WITH {POSITIONS}, committed AS (
        SELECT run, group_id, topic, partition, max_by(offset, at_ns) AS committed_offset, max(at_ns) AS at_ns, count(1) AS commits
        FROM commits GROUP BY run, group_id, topic, partition
    ), ended AS (SELECT run, topic, partition, max(end) AS end_offset FROM ends GROUP BY run, topic, partition)
    SELECT group_id, topic, partition, committed_offset, end_offset, greatest(end_offset - committed_offset, 0) AS lag,
           round((at_ns - starts_ns) / 1e9, 3) AS committed_s
    FROM committed JOIN starts USING (run) LEFT JOIN ended USING (run, topic, partition) ORDER BY lag DESC, group_id, topic, partition
"""

OVER_TIME = f"""
    WITH {POSITIONS}, followed AS (
        SELECT run, group_id, topic, partition FROM (
            SELECT *, row_number() OVER (PARTITION BY run, group_id ORDER BY commits DESC, topic, partition) AS nth
            FROM (SELECT run, group_id, topic, partition, count(1) AS commits FROM commits GROUP BY run, group_id, topic, partition))
        WHERE nth <= {MAX_PARTITIONS}
    ), span AS (
        SELECT run, starts_ns, greatest(max(ready_ns) - starts_ns, {INTERVALS}) / {INTERVALS} AS width
        FROM {{requests}} JOIN starts USING (run) GROUP BY run, starts_ns
    ), times AS (SELECT run, starts_ns, width, explode(sequence(0, {INTERVALS})) AS nth FROM span
    ), known AS (
        SELECT run, group_id, topic, partition, CAST(ceil((at_ns - starts_ns) / width) AS int) AS nth, max_by(offset, at_ns) AS offset, NULL AS end
        FROM commits JOIN span USING (run) GROUP BY ALL
        UNION ALL
        SELECT run, group_id, topic, partition, CAST(ceil((at_ns - starts_ns) / width) AS int), NULL, max(end)
        FROM ends JOIN followed USING (run, topic, partition) JOIN span USING (run) GROUP BY ALL
    ), sampled AS (
        SELECT run, group_id, topic, partition, nth, max(starts_ns) AS starts_ns, max(width) AS width, max(offset) AS offset, max(end) AS end FROM (
            SELECT run, group_id, topic, partition, nth, starts_ns, width, NULL AS offset, NULL AS end FROM followed JOIN times USING (run)
            UNION ALL SELECT run, group_id, topic, partition, nth, NULL, NULL, offset, end FROM known LEFT SEMI JOIN followed
                      USING (run, group_id, topic, partition))
        GROUP BY run, group_id, topic, partition, nth
    ), filled AS (
        SELECT run, group_id, nth, round(nth * width / 1e9, 3) AS at_s, last(offset, true) OVER p AS offset, max(end) OVER p AS end
        FROM sampled WINDOW p AS (PARTITION BY run, group_id, topic, partition ORDER BY nth)
    )
    SELECT group_id, at_s, sum(greatest(end - offset, 0)) AS lag FROM filled WHERE offset IS NOT NULL AND end IS NOT NULL AND at_s IS NOT NULL
    GROUP BY run, group_id, nth, at_s ORDER BY group_id, at_s
"""

ANSWER = Answer(
    "lag",
    "How far behind is each group?",
    (
        Query(
            "partitions",
            "each partition of a group: the last committed offset that a commit or an OffsetFetch shows, the highest end offset that a response to "
            "a producer or consumer shows, and the records between them (lag)",
            PARTITIONS,
        ),
        Query(
            "over-time",
            "lag of each group over time: the sum over its partitions; a partition counts from the time of its first committed offset",
            OVER_TIME,
        ),
    ),
)
