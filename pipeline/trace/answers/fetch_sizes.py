"""Queries about fetches: sizes of the responses against the limits of the requests (KIP-74), records per fetch, and requests per record."""

from __future__ import annotations

from kafkaproto.pipeline.trace.answers.answer import FAMILY, WHOLE, Answer, Query

CONSUMING = f"api = 'Fetch' AND coalesce(replica_id, -1) < 0 AND {WHOLE}"

CLIENTS = f"""
    WITH sizes AS (
        SELECT r.run, r.seq, {FAMILY} AS client, r.max_bytes, r.records_bytes, coalesce(p.records, 0) AS records, p.first_batch_bytes,
               coalesce(p.over, 0) AS over
        FROM {{requests}} r LEFT JOIN (
            SELECT run, seq, sum(records) AS records, min_by(first_batch_bytes, position) FILTER (WHERE bytes > 0) AS first_batch_bytes,
                   count_if(bytes > limit_bytes) AS over
            FROM {{partitions}} WHERE api = 'Fetch' GROUP BY run, seq) p ON p.run = r.run AND p.seq = r.seq
        WHERE {CONSUMING}
    )
    SELECT client, count(1) AS fetches, count_if(records_bytes = 0) AS empty, max(max_bytes) AS max_bytes,
           percentile_approx(CASE WHEN records_bytes > 0 THEN records_bytes END, 0.5, 1000) AS p50_bytes,
           percentile_approx(CASE WHEN records_bytes > 0 THEN records_bytes END, 0.95, 1000) AS p95_bytes, max(records_bytes) AS largest_bytes,
           count_if(records_bytes >= 0.95 * max_bytes) AS full, count_if(records_bytes > max_bytes) AS beyond_for_a_first_batch,
           sum(over) AS partitions_beyond_their_limit, sum(records) AS records
    FROM sizes GROUP BY client ORDER BY fetches DESC, client
"""

SIZES = f"""
    SELECT CAST(round(8 * log10(max_bytes)) AS int) AS limit_eighths, CAST(round(8 * log10(records_bytes)) AS int) AS size_eighths,
           count(1) AS fetches, max(records_bytes > max_bytes) AS beyond, max(max_bytes) AS max_bytes, max(records_bytes) AS largest_bytes
    FROM {{requests}} WHERE {CONSUMING} AND records_bytes > 0 AND max_bytes > 0 GROUP BY 1, 2 ORDER BY 1, 2
"""

RECORDS = f"""
    WITH carried AS (
        SELECT p.run, p.seq, sum(p.records) AS records FROM {{partitions}} p WHERE p.api = 'Fetch' GROUP BY p.run, p.seq
    )
    SELECT CASE WHEN records <= 0 THEN -1 ELSE CAST(floor(log2(records)) AS int) END AS power_of_two, count(1) AS fetches
    FROM (SELECT r.run, r.seq, coalesce(c.records, 0) AS records FROM {{requests}} r LEFT JOIN carried c ON c.run = r.run AND c.seq = r.seq
          WHERE {CONSUMING})
    GROUP BY 1 ORDER BY 1
"""

COSTS = f"""
    WITH carried AS (
        SELECT {FAMILY} AS client, sum(b.count) AS records FROM {{batches}} b JOIN {{requests}} r ON r.run = b.run AND r.seq = b.seq
        WHERE b.api = 'Fetch' AND coalesce(r.replica_id, -1) < 0 GROUP BY 1
    )
    SELECT {FAMILY} AS client, count(1) AS requests, max(c.records) AS records,
           round(1000 * count(1) / max(c.records), 2) AS requests_per_1000_records
    FROM {{requests}} r JOIN carried c ON c.client = {FAMILY} WHERE c.records > 0 GROUP BY 1 ORDER BY requests_per_1000_records DESC
"""

ANSWER = Answer(
    "fetch-sizes",
    "How large were fetch responses, compared with their limits?",
    (
        Query(
            "clients",
            "sizes of the records in fetch responses, for each client. full: at least 95 % of max_bytes; beyond_for_a_first_batch: more than "
            "max_bytes. Only the first batch of a response may be larger than max_bytes, so that the consumer makes progress",
            CLIENTS,
        ),
        Query(
            "sizes",
            "number of fetch responses by max_bytes and by size of their records, in classes: limit_eighths and size_eighths are 8 times the decimal "
            "logarithm of the bytes, rounded (24 means about 1 kB, 48 about 1 MB)",
            SIZES,
        ),
        Query(
            "records",
            "number of fetches by records in the response, in classes: power_of_two is 3 for 8 to 15 records, and -1 for no records",
            RECORDS,
        ),
        Query("costs", "requests of any API per thousand records that a client fetched", COSTS),
    ),
)
