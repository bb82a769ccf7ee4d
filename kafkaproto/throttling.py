"""From which version on a response tells its throttle time, and from which on a client waits it out by itself (KIP-124, KIP-219; T-1).

Data about the protocol: a broker since 2.0 mutes the connection whatever the version. Between the two versions lie those in which a
client is told, but was served by brokers that had waited already, and so does not wait again. Must never know who throttles whom.
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
"""The first version in which the Java client waits by itself (`AbstractResponse.shouldClientThrottle`). An API that is missing has
none: its clients are told at best, and it is the mute alone that slows them down."""


def client_waits(api_key: int, version: int) -> bool:
    """Whether the Java client, told a throttle time in this version, sends nothing before it is over."""
    since = CLIENT_WAITS_SINCE.get(ApiKey(api_key))
    return since is not None and version >= since


@cache
def told_since(api_key: int) -> int | None:
    """The first version whose response has `throttle_time_ms`; None: no version has. Raises KeyError for an unknown key."""
    info = APIS[ApiKey(api_key)]
    for version in range(info.min_version, info.max_version + 1):
        if any(name == "throttle_time_ms" for name, _ in codec(api_key, version).response.fields):
            return version
    return None
