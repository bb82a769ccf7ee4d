# Generated from schemas/messages/*.json by `python -m kafkaproto.generator`. Do not edit.

"""Index of the messages: API keys, versions and modules. Importing it imports no message."""


from enum import IntEnum
from typing import NamedTuple


class ApiKey(IntEnum):
    """API keys by name."""

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
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


class ApiInfo(NamedTuple):
    """An API: key, name, versions, first flexible version (None if there is none), and the module of its messages."""

    key: ApiKey
    name: str
    min_version: int
    max_version: int
    first_flexible: int | None
    module: str


APIS: dict[int, ApiInfo] = {
    0: ApiInfo(ApiKey.PRODUCE, "Produce", 0, 13, 9, "produce"),
    1: ApiInfo(ApiKey.FETCH, "Fetch", 0, 18, 12, "fetch"),
    2: ApiInfo(ApiKey.LIST_OFFSETS, "ListOffsets", 0, 11, 6, "list_offsets"),
    3: ApiInfo(ApiKey.METADATA, "Metadata", 0, 13, 9, "metadata"),
    8: ApiInfo(ApiKey.OFFSET_COMMIT, "OffsetCommit", 0, 10, 8, "offset_commit"),
    9: ApiInfo(ApiKey.OFFSET_FETCH, "OffsetFetch", 0, 10, 6, "offset_fetch"),
    10: ApiInfo(ApiKey.FIND_COORDINATOR, "FindCoordinator", 0, 6, 3, "find_coordinator"),
    11: ApiInfo(ApiKey.JOIN_GROUP, "JoinGroup", 0, 9, 6, "join_group"),
    12: ApiInfo(ApiKey.HEARTBEAT, "Heartbeat", 0, 4, 4, "heartbeat"),
    13: ApiInfo(ApiKey.LEAVE_GROUP, "LeaveGroup", 0, 5, 4, "leave_group"),
    14: ApiInfo(ApiKey.SYNC_GROUP, "SyncGroup", 0, 5, 4, "sync_group"),
    15: ApiInfo(ApiKey.DESCRIBE_GROUPS, "DescribeGroups", 0, 6, 5, "describe_groups"),
    16: ApiInfo(ApiKey.LIST_GROUPS, "ListGroups", 0, 5, 3, "list_groups"),
    17: ApiInfo(ApiKey.SASL_HANDSHAKE, "SaslHandshake", 0, 1, None, "sasl_handshake"),
    18: ApiInfo(ApiKey.API_VERSIONS, "ApiVersions", 0, 4, 3, "api_versions"),
    19: ApiInfo(ApiKey.CREATE_TOPICS, "CreateTopics", 0, 7, 5, "create_topics"),
    20: ApiInfo(ApiKey.DELETE_TOPICS, "DeleteTopics", 0, 6, 4, "delete_topics"),
    21: ApiInfo(ApiKey.DELETE_RECORDS, "DeleteRecords", 0, 2, 2, "delete_records"),
    22: ApiInfo(ApiKey.INIT_PRODUCER_ID, "InitProducerId", 0, 5, 2, "init_producer_id"),
    23: ApiInfo(ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 0, 4, 4, "offset_for_leader_epoch"),
    24: ApiInfo(ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", 0, 5, 3, "add_partitions_to_txn"),
    25: ApiInfo(ApiKey.ADD_OFFSETS_TO_TXN, "AddOffsetsToTxn", 0, 4, 3, "add_offsets_to_txn"),
    26: ApiInfo(ApiKey.END_TXN, "EndTxn", 0, 5, 3, "end_txn"),
    27: ApiInfo(ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkers", 0, 2, 1, "write_txn_markers"),
    28: ApiInfo(ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommit", 0, 5, 3, "txn_offset_commit"),
    29: ApiInfo(ApiKey.DESCRIBE_ACLS, "DescribeAcls", 0, 3, 2, "describe_acls"),
    30: ApiInfo(ApiKey.CREATE_ACLS, "CreateAcls", 0, 3, 2, "create_acls"),
    31: ApiInfo(ApiKey.DELETE_ACLS, "DeleteAcls", 0, 3, 2, "delete_acls"),
    32: ApiInfo(ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", 0, 4, 4, "describe_configs"),
    33: ApiInfo(ApiKey.ALTER_CONFIGS, "AlterConfigs", 0, 2, 2, "alter_configs"),
    34: ApiInfo(ApiKey.ALTER_REPLICA_LOG_DIRS, "AlterReplicaLogDirs", 0, 2, 2, "alter_replica_log_dirs"),
    35: ApiInfo(ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirs", 0, 4, 2, "describe_log_dirs"),
    36: ApiInfo(ApiKey.SASL_AUTHENTICATE, "SaslAuthenticate", 0, 2, 2, "sasl_authenticate"),
    37: ApiInfo(ApiKey.CREATE_PARTITIONS, "CreatePartitions", 0, 3, 2, "create_partitions"),
    38: ApiInfo(ApiKey.CREATE_DELEGATION_TOKEN, "CreateDelegationToken", 0, 3, 2, "create_delegation_token"),
    39: ApiInfo(ApiKey.RENEW_DELEGATION_TOKEN, "RenewDelegationToken", 0, 2, 2, "renew_delegation_token"),
    40: ApiInfo(ApiKey.EXPIRE_DELEGATION_TOKEN, "ExpireDelegationToken", 0, 2, 2, "expire_delegation_token"),
    41: ApiInfo(ApiKey.DESCRIBE_DELEGATION_TOKEN, "DescribeDelegationToken", 0, 3, 2, "describe_delegation_token"),
    42: ApiInfo(ApiKey.DELETE_GROUPS, "DeleteGroups", 0, 2, 2, "delete_groups"),
    43: ApiInfo(ApiKey.ELECT_LEADERS, "ElectLeaders", 0, 2, 2, "elect_leaders"),
    44: ApiInfo(ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", 0, 1, 1, "incremental_alter_configs"),
    45: ApiInfo(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "AlterPartitionReassignments", 0, 1, 0, "alter_partition_reassignments"),
    46: ApiInfo(ApiKey.LIST_PARTITION_REASSIGNMENTS, "ListPartitionReassignments", 0, 0, 0, "list_partition_reassignments"),
    47: ApiInfo(ApiKey.OFFSET_DELETE, "OffsetDelete", 0, 0, None, "offset_delete"),
    48: ApiInfo(ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", 0, 1, 1, "describe_client_quotas"),
    49: ApiInfo(ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotas", 0, 1, 1, "alter_client_quotas"),
    50: ApiInfo(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "DescribeUserScramCredentials", 0, 0, 0, "describe_user_scram_credentials"),
    51: ApiInfo(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "AlterUserScramCredentials", 0, 0, 0, "alter_user_scram_credentials"),
    55: ApiInfo(ApiKey.DESCRIBE_QUORUM, "DescribeQuorum", 0, 2, 0, "describe_quorum"),
    57: ApiInfo(ApiKey.UPDATE_FEATURES, "UpdateFeatures", 0, 2, 0, "update_features"),
    60: ApiInfo(ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", 0, 2, 0, "describe_cluster"),
    61: ApiInfo(ApiKey.DESCRIBE_PRODUCERS, "DescribeProducers", 0, 0, 0, "describe_producers"),
    64: ApiInfo(ApiKey.UNREGISTER_BROKER, "UnregisterBroker", 0, 0, 0, "unregister_broker"),
    65: ApiInfo(ApiKey.DESCRIBE_TRANSACTIONS, "DescribeTransactions", 0, 0, 0, "describe_transactions"),
    66: ApiInfo(ApiKey.LIST_TRANSACTIONS, "ListTransactions", 0, 2, 0, "list_transactions"),
    68: ApiInfo(ApiKey.CONSUMER_GROUP_HEARTBEAT, "ConsumerGroupHeartbeat", 0, 1, 0, "consumer_group_heartbeat"),
    69: ApiInfo(ApiKey.CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe", 0, 1, 0, "consumer_group_describe"),
    71: ApiInfo(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, "GetTelemetrySubscriptions", 0, 0, 0, "get_telemetry_subscriptions"),
    72: ApiInfo(ApiKey.PUSH_TELEMETRY, "PushTelemetry", 0, 0, 0, "push_telemetry"),
    74: ApiInfo(ApiKey.LIST_CONFIG_RESOURCES, "ListConfigResources", 0, 1, 0, "list_config_resources"),
    75: ApiInfo(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitions", 0, 0, 0, "describe_topic_partitions"),
    76: ApiInfo(ApiKey.SHARE_GROUP_HEARTBEAT, "ShareGroupHeartbeat", 1, 1, 0, "share_group_heartbeat"),
    77: ApiInfo(ApiKey.SHARE_GROUP_DESCRIBE, "ShareGroupDescribe", 1, 1, 0, "share_group_describe"),
    78: ApiInfo(ApiKey.SHARE_FETCH, "ShareFetch", 1, 2, 0, "share_fetch"),
    79: ApiInfo(ApiKey.SHARE_ACKNOWLEDGE, "ShareAcknowledge", 1, 2, 0, "share_acknowledge"),
    80: ApiInfo(ApiKey.ADD_RAFT_VOTER, "AddRaftVoter", 0, 1, 0, "add_raft_voter"),
    81: ApiInfo(ApiKey.REMOVE_RAFT_VOTER, "RemoveRaftVoter", 0, 0, 0, "remove_raft_voter"),
    83: ApiInfo(ApiKey.INITIALIZE_SHARE_GROUP_STATE, "InitializeShareGroupState", 0, 0, 0, "initialize_share_group_state"),
    84: ApiInfo(ApiKey.READ_SHARE_GROUP_STATE, "ReadShareGroupState", 0, 0, 0, "read_share_group_state"),
    85: ApiInfo(ApiKey.WRITE_SHARE_GROUP_STATE, "WriteShareGroupState", 0, 1, 0, "write_share_group_state"),
    86: ApiInfo(ApiKey.DELETE_SHARE_GROUP_STATE, "DeleteShareGroupState", 0, 0, 0, "delete_share_group_state"),
    87: ApiInfo(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, "ReadShareGroupStateSummary", 0, 1, 0, "read_share_group_state_summary"),
    88: ApiInfo(ApiKey.STREAMS_GROUP_HEARTBEAT, "StreamsGroupHeartbeat", 0, 0, 0, "streams_group_heartbeat"),
    89: ApiInfo(ApiKey.STREAMS_GROUP_DESCRIBE, "StreamsGroupDescribe", 0, 0, 0, "streams_group_describe"),
    90: ApiInfo(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "DescribeShareGroupOffsets", 0, 1, 0, "describe_share_group_offsets"),
    91: ApiInfo(ApiKey.ALTER_SHARE_GROUP_OFFSETS, "AlterShareGroupOffsets", 0, 0, 0, "alter_share_group_offsets"),
    92: ApiInfo(ApiKey.DELETE_SHARE_GROUP_OFFSETS, "DeleteShareGroupOffsets", 0, 0, 0, "delete_share_group_offsets"),
}
