"""Queries about the recording itself: recorder, duration, size, and incomplete parts."""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import GIVEN_UP, Answer, Query

FACTS = f"""
    WITH headers AS (
        SELECT run, max(get_json_object(facts, '$.recorder')) AS recorder, max(get_json_object(facts, '$.release')) AS release,
               max(size(from_json(get_json_object(facts, '$.brokers'), 'array<struct<id: int>>'))) AS brokers
        FROM {{events}} WHERE kind = 'meta' GROUP BY run
    ), summed AS (
        SELECT run, round((max(ready_ns) - min(received_ns)) / 1e9, 1) AS seconds, count(1) AS requests, count(DISTINCT conn) AS connections,
               sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out, count_if(error <> 0) AS errors,
               count_if({GIVEN_UP} AND partial) AS without_response,
               count_if(problem IS NOT NULL AND NOT ({GIVEN_UP} AND partial)) AS incomplete
        FROM {{requests}} GROUP BY run
    )
    SELECT run, recorder, release, brokers, seconds, coalesce(requests, 0) AS requests, coalesce(connections, 0) AS connections,
           coalesce(bytes_in, 0) AS bytes_in, coalesce(bytes_out, 0) AS bytes_out, coalesce(errors, 0) AS errors,
           coalesce(without_response, 0) AS without_response, coalesce(incomplete, 0) AS incomplete
    FROM summed FULL JOIN headers USING (run) ORDER BY run
"""

ANSWER = Answer(
    "run",
    "What does the recording contain?",
    (
        Query(
            "facts",
            "recorder and size of the recording. errors: responses with an error code; without_response: requests whose connection closed before "
            "the response (for example because a consumer stops while its fetch waits), that the broker rejected, or whose response is missing in "
            "the trace; incomplete: requests or responses of which a part is missing or cannot be decoded",
            FACTS,
        ),
    ),
)
