"""Queries about client versions: which clients use which API versions, and which broker releases would accept their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto import releases
from kafkaproto.pipeline.trace.answers.answer import FAMILY, Answer, Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafkaproto.pipeline.trace.audit.rule import Tables

OLDEST = "2.1"
"""The oldest release for which `verdicts` says whether its brokers accept a client's requests. Kafka 4 supports no older clients (KIP-896)."""

CLIENTS = f"""
    WITH total AS (SELECT sum(bytes_in + bytes_out) AS bytes FROM {{requests}})
    SELECT {FAMILY} AS client, concat_ws(', ', sort_array(collect_set(software))) AS software, count(DISTINCT client_id) AS client_ids,
           count(DISTINCT run, conn) AS connections, count(1) AS requests,
           sum(bytes_in + bytes_out) AS bytes, round(100 * sum(bytes_in + bytes_out) / nullif(max(total.bytes), 0), 1) AS percent_of_bytes,
           round((max(ready_ns) - min(received_ns)) / 1e9, 1) AS seen_s, count_if(error <> 0) AS errors
    FROM {{requests}} CROSS JOIN total GROUP BY 1 ORDER BY bytes DESC
"""

OFFERED = """here AS (
            SELECT run, explode(from_json(get_json_object(facts, '$.advertised'), 'map<string, array<int>>')) AS (api_key, versions)
            FROM {events} WHERE kind = 'meta'
        )"""
"""SQL: a CTE `here` with the versions of each API that the recorded broker offers.

Columns: run, api_key (as text), versions: [lowest, highest].
"""

VERSIONS = f"""
    WITH {OFFERED}
    SELECT {FAMILY} AS client, api, api_version, max(get(versions, 0)) AS offered_from, max(get(versions, 1)) AS offered_to,
           count(1) AS requests, sum(bytes_in + bytes_out) AS bytes
    FROM {{requests}} r LEFT JOIN here h ON h.run = r.run AND try_cast(h.api_key AS int) = r.api_key
    WHERE api IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

ERRORS = f"""
    SELECT api, error, {FAMILY} AS client, count(1) AS answers, min(seq) AS first_seq
    FROM {{requests}} WHERE error <> 0 GROUP BY 1, 2, 3 ORDER BY answers DESC, 1, 2, 3
"""

WORKS, OLDER, MISSING, UNKNOWN, BREAKS = "works", "older versions", "misses an API", "not known", "breaks"
WORST_FIRST = (BREAKS, UNKNOWN, MISSING, OLDER, WORKS)


def verdicts(tables: Tables) -> DataFrame:
    """Return a row for each client and release, whose column `verdict` says whether a broker of that release accepts the client's requests.

    For each API, the newest version that the client used is compared with the versions that the release accepts:

    - The newest version is accepted: the client works.
    - The newest version is above the accepted versions: a client that sends ApiVersions uses older versions; any other client breaks.
    - The newest version is below the accepted versions: the client breaks. But if the recorded broker offered no newer version, the verdict is "not
      known": the client may support a newer version.
    - The release lacks the API: a client that does not send ApiVersions breaks. For a client that sends ApiVersions, the verdict is "misses an API",
      because it is unknown how the client reacts.

    Columns:

    - client: the client id with `*` for varying parts.
    - release: the release.
    - verdict: the worst verdict of all APIs.
    - reason: the APIs and versions for which the verdict is neither "works" nor "older versions", each with the versions that the release accepts.
    """
    spark = tables.requests.sparkSession
    release_names = [name for name in releases.releases() if releases.number(name) >= releases.number(OLDEST)]
    offered = [(name, key, *versions) for name in release_names for key, versions in releases.accepted(name).items()]
    query = f"""
        WITH {OFFERED}, asking AS (SELECT DISTINCT run, {FAMILY} AS client FROM {{requests}} WHERE api = 'ApiVersions'),
        used AS (
            SELECT run, {FAMILY} AS client, api_key, api, max(api_version) AS newest, min(api_version) AS oldest, count(1) AS requests
            FROM {{requests}} WHERE api_key IS NOT NULL AND api <> 'ApiVersions' GROUP BY 1, 2, 3, 4
        ), judged AS (
            SELECT u.client, u.api, u.newest, nth, k.release, low, high, u.requests, CASE
                WHEN high IS NULL THEN CASE WHEN a.client IS NULL THEN '{BREAKS}' ELSE '{MISSING}' END
                WHEN newest < low AND newest = coalesce(get(h.versions, 1), -1) THEN '{UNKNOWN}'
                WHEN newest < low THEN '{BREAKS}'
                WHEN newest <= high THEN '{WORKS}'
                WHEN a.client IS NULL THEN '{BREAKS}'
                ELSE '{OLDER}' END AS verdict
            FROM used u CROSS JOIN {{release_names}} k
            LEFT JOIN {{offered}} o ON o.release = k.release AND o.api_key = u.api_key
            LEFT JOIN here h ON h.run = u.run AND try_cast(h.api_key AS int) = u.api_key
            LEFT JOIN asking a ON a.run = u.run AND a.client = u.client
        )
        SELECT client, release, min_by(verdict, array_position(array{WORST_FIRST}, verdict)) AS verdict,
               concat_ws(', ', sort_array(collect_set(CASE WHEN verdict NOT IN ('{OLDER}', '{WORKS}') THEN
                 concat(api, ' ', newest, CASE WHEN high IS NULL THEN ' (missing API)' ELSE concat(' (accepts ', low, ' to ', high, ')') END)
               END))) AS reason
        FROM judged GROUP BY client, release, nth ORDER BY client, nth
    """
    return tables.sql(
        query,
        offered=spark.createDataFrame(offered, "release string, api_key int, low int, high int"),
        release_names=spark.createDataFrame(list(enumerate(release_names)), "nth int, release string"),
    )


ANSWER = Answer(
    "census",
    "Which clients are there, which versions do they use, and which broker releases accept them?",
    (
        Query(
            "clients",
            "each client; client ids that differ only in numbers or UUIDs count as one client, with * for these parts",
            CLIENTS,
        ),
        Query(
            "verdicts",
            "whether brokers of each release accept the requests of a client (verdict). works: all. older versions: the client must use older "
            "versions of some APIs, and can, because it sends ApiVersions. misses an API: the release lacks an API that the client used. not known: "
            "the client must use newer versions of some APIs, and the trace does not show whether it can. breaks: some requests are rejected. "
            "reason: the newest version that the client used, and the versions that the release accepts",
            verdicts,
        ),
        Query(
            "versions",
            "requests of each client by API and version, and the versions that the recorded broker offers",
            VERSIONS,
        ),
        Query("errors", "number of responses with an error code, by API, error code and client", ERRORS),
    ),
)
