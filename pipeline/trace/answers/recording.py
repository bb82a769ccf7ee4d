"""What was recorded: by whom, for how long, how much, and what of it is not whole."""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import GIVEN_UP, Answer, Query

FACTS = f"""
    WITH told AS (
        SELECT run, max(get_json_object(facts, '$.recorder')) AS recorder, max(get_json_object(facts, '$.release')) AS release,
               max(size(from_json(get_json_object(facts, '$.brokers'), 'array<struct<id: int>>'))) AS brokers
        FROM {{events}} WHERE kind = 'meta' GROUP BY run
    ), summed AS (
        SELECT run, round((max(ready_ns) - min(received_ns)) / 1e9, 1) AS seconds, count(1) AS requests, count(DISTINCT conn) AS connections,
               sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out, count_if(error <> 0) AS errors,
               count_if({GIVEN_UP} AND partial) AS without_an_answer,
               count_if(trouble IS NOT NULL AND NOT ({GIVEN_UP} AND partial)) AS not_whole
        FROM {{requests}} GROUP BY run
    )
    SELECT run, recorder, release, brokers, seconds, coalesce(requests, 0) AS requests, coalesce(connections, 0) AS connections,
           coalesce(bytes_in, 0) AS bytes_in, coalesce(bytes_out, 0) AS bytes_out, coalesce(errors, 0) AS errors,
           coalesce(without_an_answer, 0) AS without_an_answer, coalesce(not_whole, 0) AS not_whole
    FROM summed FULL JOIN told USING (run) ORDER BY run
"""

ANSWER = Answer(
    "run",
    "What was recorded?",
    (
        Query(
            "facts",
            "who recorded it, and how much; errors: answers with one; without an answer: their connection ended first, as that of a consumer "
            "does which is closed while it waits, they were refused, or the recording has not the answer; not whole: a part is missing, or "
            "cannot be read",
            FACTS,
        ),
    ),
)
