# Generated from schemas/messages/*.json by `python -m kafkaproto.generator`. Do not edit.

"""Which messages there are. Importing this imports none of them."""


from enum import IntEnum
from typing import NamedTuple


class ApiKey(IntEnum):
    """The numbers of the APIs."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    DESCRIBE_CONFIGS = 32
    INCREMENTAL_ALTER_CONFIGS = 44
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_CLUSTER = 60


class ApiInfo(NamedTuple):
    """An API: its versions, the first flexible one (None: there is none), the module with its messages."""

    key: ApiKey
    name: str
    min_version: int
    max_version: int
    first_flexible: int | None
    module: str


APIS: dict[int, ApiInfo] = {
    0: ApiInfo(ApiKey.PRODUCE, "Produce", 0, 11, 9, "produce"),
    1: ApiInfo(ApiKey.FETCH, "Fetch", 0, 17, 12, "fetch"),
    2: ApiInfo(ApiKey.LIST_OFFSETS, "ListOffsets", 0, 9, 6, "list_offsets"),
    3: ApiInfo(ApiKey.METADATA, "Metadata", 0, 12, 9, "metadata"),
    8: ApiInfo(ApiKey.OFFSET_COMMIT, "OffsetCommit", 0, 9, 8, "offset_commit"),
    9: ApiInfo(ApiKey.OFFSET_FETCH, "OffsetFetch", 0, 9, 6, "offset_fetch"),
    10: ApiInfo(ApiKey.FIND_COORDINATOR, "FindCoordinator", 0, 6, 3, "find_coordinator"),
    11: ApiInfo(ApiKey.JOIN_GROUP, "JoinGroup", 0, 9, 6, "join_group"),
    12: ApiInfo(ApiKey.HEARTBEAT, "Heartbeat", 0, 4, 4, "heartbeat"),
    13: ApiInfo(ApiKey.LEAVE_GROUP, "LeaveGroup", 0, 5, 4, "leave_group"),
    14: ApiInfo(ApiKey.SYNC_GROUP, "SyncGroup", 0, 5, 4, "sync_group"),
    15: ApiInfo(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", 0, 5, 5, "describe_groups"),
    16: ApiInfo(ApiKey.LIST_GROUPS, "ListGroups", 0, 5, 3, "list_groups"),
    18: ApiInfo(ApiKey.API_VERSIONS, "ApiVersions", 0, 4, 3, "api_versions"),
    19: ApiInfo(ApiKey.CREATE_TOPICS, "CreateTopics", 0, 7, 5, "create_topics"),
    20: ApiInfo(ApiKey.DELETE_TOPICS, "DeleteTopics", 0, 6, 4, "delete_topics"),
    22: ApiInfo(ApiKey.INIT_PRODUCER_ID, "InitProducerId", 0, 5, 2, "init_producer_id"),
    23: ApiInfo(ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 0, 4, 4, "offset_for_leader_epoch"),
    32: ApiInfo(ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", 0, 4, 4, "describe_configs"),
    44: ApiInfo(ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", 0, 1, 1, "incremental_alter_configs"),
    48: ApiInfo(ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", 0, 1, 1, "describe_client_quotas"),
    49: ApiInfo(ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotas", 0, 1, 1, "alter_client_quotas"),
    60: ApiInfo(ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", 0, 1, 0, "describe_cluster"),
}
