"""For each API: the first version whose response has a throttle time, and the first version in which the Java client waits for that time.

Brokers before 2.0 delay a throttled response, so that the client need not wait again. Brokers since 2.0 send a throttled response at once and mute
the connection, whatever the version of the request. The Java client therefore waits only in versions that no broker before 2.0 supports (KIP-124,
KIP-219; T-1). This module does not depend on quotas.
"""

from __future__ import annotations

from functools import cache

from kafkaproto.api import APIS, ApiKey, codec

CLIENT_WAITS_SINCE: dict[ApiKey, int] = {
    ApiKey.PRODUCE: 6,
    ApiKey.FETCH: 8,
    ApiKey.LIST_OFFSETS: 3,
    ApiKey.METADATA: 6,
    ApiKey.OFFSET_COMMIT: 4,
    ApiKey.OFFSET_FETCH: 4,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.HEARTBEAT: 2,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.SYNC_GROUP: 2,
    ApiKey.DESCRIBE_GROUPS: 2,
    ApiKey.LIST_GROUPS: 2,
    ApiKey.API_VERSIONS: 2,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.DELETE_TOPICS: 2,
    ApiKey.DELETE_RECORDS: 1,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.ADD_PARTITIONS_TO_TXN: 1,
    ApiKey.ADD_OFFSETS_TO_TXN: 1,
    ApiKey.END_TXN: 1,
    ApiKey.TXN_OFFSET_COMMIT: 1,
    ApiKey.DESCRIBE_ACLS: 1,
    ApiKey.CREATE_ACLS: 1,
    ApiKey.DELETE_ACLS: 1,
    ApiKey.DESCRIBE_CONFIGS: 2,
    ApiKey.ALTER_CONFIGS: 1,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
    ApiKey.CREATE_PARTITIONS: 1,
    ApiKey.CREATE_DELEGATION_TOKEN: 1,
    ApiKey.RENEW_DELEGATION_TOKEN: 1,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 1,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 1,
    ApiKey.DELETE_GROUPS: 1,
    ApiKey.ELECT_LEADERS: 0,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 0,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: 0,
    ApiKey.OFFSET_DELETE: 0,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.UNREGISTER_BROKER: 0,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: 0,
}
"""Maps an API to the first version in which the Java client itself waits for the throttle time (`AbstractResponse.shouldClientThrottle`).

For an API that is not listed, the Java client never waits: the broker slows it down only by muting the connection.
"""


def client_waits(api_key: int, version: int) -> bool:
    """Return whether the Java client, after a throttled response in this version, sends nothing until the throttle time is over."""
    since = CLIENT_WAITS_SINCE.get(ApiKey(api_key))
    return since is not None and version >= since


@cache
def throttle_time_since(api_key: int) -> int | None:
    """Return the first version of an API whose response has the field `throttle_time_ms`; None if no version has this field.

    Raises ValueError for an unknown API key.
    """
    info = APIS[ApiKey(api_key)]
    for version in range(info.min_version, info.max_version + 1):
        if any(name == "throttle_time_ms" for name, _ in codec(api_key, version).response.fields):
            return version
    return None
