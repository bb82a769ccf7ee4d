# Generated from schemas/data/*.json by `python -m kafkaproto.generator`. Do not edit.

"""Index of the data inside messages and records: versions and module of each kind. Importing the index does not import the modules."""

from typing import NamedTuple


class DataInfo(NamedTuple):
    """A kind of data inside messages or records: its name, its versions, and the module with its layouts."""

    name: str
    min_version: int
    max_version: int
    module: str


DATA: dict[str, DataInfo] = {
    "ConsumerGroupCurrentMemberAssignmentKey": DataInfo("ConsumerGroupCurrentMemberAssignmentKey", 8, 8, "consumer_group_current_member_assignment_key"),
    "ConsumerGroupCurrentMemberAssignmentValue": DataInfo("ConsumerGroupCurrentMemberAssignmentValue", 0, 0, "consumer_group_current_member_assignment_value"),
    "ConsumerGroupMemberMetadataKey": DataInfo("ConsumerGroupMemberMetadataKey", 5, 5, "consumer_group_member_metadata_key"),
    "ConsumerGroupMemberMetadataValue": DataInfo("ConsumerGroupMemberMetadataValue", 0, 0, "consumer_group_member_metadata_value"),
    "ConsumerGroupMetadataKey": DataInfo("ConsumerGroupMetadataKey", 3, 3, "consumer_group_metadata_key"),
    "ConsumerGroupMetadataValue": DataInfo("ConsumerGroupMetadataValue", 0, 0, "consumer_group_metadata_value"),
    "ConsumerGroupPartitionMetadataKey": DataInfo("ConsumerGroupPartitionMetadataKey", 4, 4, "consumer_group_partition_metadata_key"),
    "ConsumerGroupPartitionMetadataValue": DataInfo("ConsumerGroupPartitionMetadataValue", 0, 0, "consumer_group_partition_metadata_value"),
    "ConsumerGroupRegularExpressionKey": DataInfo("ConsumerGroupRegularExpressionKey", 16, 16, "consumer_group_regular_expression_key"),
    "ConsumerGroupRegularExpressionValue": DataInfo("ConsumerGroupRegularExpressionValue", 0, 0, "consumer_group_regular_expression_value"),
    "ConsumerGroupTargetAssignmentMemberKey": DataInfo("ConsumerGroupTargetAssignmentMemberKey", 7, 7, "consumer_group_target_assignment_member_key"),
    "ConsumerGroupTargetAssignmentMemberValue": DataInfo("ConsumerGroupTargetAssignmentMemberValue", 0, 0, "consumer_group_target_assignment_member_value"),
    "ConsumerGroupTargetAssignmentMetadataKey": DataInfo("ConsumerGroupTargetAssignmentMetadataKey", 6, 6, "consumer_group_target_assignment_metadata_key"),
    "ConsumerGroupTargetAssignmentMetadataValue": DataInfo("ConsumerGroupTargetAssignmentMetadataValue", 0, 0, "consumer_group_target_assignment_metadata_value"),
    "ConsumerProtocolAssignment": DataInfo("ConsumerProtocolAssignment", 0, 3, "consumer_protocol_assignment"),
    "ConsumerProtocolSubscription": DataInfo("ConsumerProtocolSubscription", 0, 3, "consumer_protocol_subscription"),
    "DefaultPrincipalData": DataInfo("DefaultPrincipalData", 0, 0, "default_principal_data"),
    "EndTxnMarker": DataInfo("EndTxnMarker", 0, 0, "end_txn_marker"),
    "GroupMetadataKey": DataInfo("GroupMetadataKey", 2, 2, "group_metadata_key"),
    "GroupMetadataValue": DataInfo("GroupMetadataValue", 0, 4, "group_metadata_value"),
    "KRaftVersionRecord": DataInfo("KRaftVersionRecord", 0, 0, "k_raft_version_record"),
    "LeaderChangeMessage": DataInfo("LeaderChangeMessage", 0, 1, "leader_change_message"),
    "OffsetCommitKey": DataInfo("OffsetCommitKey", 0, 1, "offset_commit_key"),
    "OffsetCommitValue": DataInfo("OffsetCommitValue", 0, 4, "offset_commit_value"),
    "ShareGroupCurrentMemberAssignmentKey": DataInfo("ShareGroupCurrentMemberAssignmentKey", 14, 14, "share_group_current_member_assignment_key"),
    "ShareGroupCurrentMemberAssignmentValue": DataInfo("ShareGroupCurrentMemberAssignmentValue", 0, 0, "share_group_current_member_assignment_value"),
    "ShareGroupMemberMetadataKey": DataInfo("ShareGroupMemberMetadataKey", 10, 10, "share_group_member_metadata_key"),
    "ShareGroupMemberMetadataValue": DataInfo("ShareGroupMemberMetadataValue", 0, 0, "share_group_member_metadata_value"),
    "ShareGroupMetadataKey": DataInfo("ShareGroupMetadataKey", 11, 11, "share_group_metadata_key"),
    "ShareGroupMetadataValue": DataInfo("ShareGroupMetadataValue", 0, 0, "share_group_metadata_value"),
    "ShareGroupStatePartitionMetadataKey": DataInfo("ShareGroupStatePartitionMetadataKey", 15, 15, "share_group_state_partition_metadata_key"),
    "ShareGroupStatePartitionMetadataValue": DataInfo("ShareGroupStatePartitionMetadataValue", 0, 0, "share_group_state_partition_metadata_value"),
    "ShareGroupTargetAssignmentMemberKey": DataInfo("ShareGroupTargetAssignmentMemberKey", 13, 13, "share_group_target_assignment_member_key"),
    "ShareGroupTargetAssignmentMemberValue": DataInfo("ShareGroupTargetAssignmentMemberValue", 0, 0, "share_group_target_assignment_member_value"),
    "ShareGroupTargetAssignmentMetadataKey": DataInfo("ShareGroupTargetAssignmentMetadataKey", 12, 12, "share_group_target_assignment_metadata_key"),
    "ShareGroupTargetAssignmentMetadataValue": DataInfo("ShareGroupTargetAssignmentMetadataValue", 0, 0, "share_group_target_assignment_metadata_value"),
    "ShareSnapshotKey": DataInfo("ShareSnapshotKey", 0, 0, "share_snapshot_key"),
    "ShareSnapshotValue": DataInfo("ShareSnapshotValue", 0, 0, "share_snapshot_value"),
    "ShareUpdateKey": DataInfo("ShareUpdateKey", 1, 1, "share_update_key"),
    "ShareUpdateValue": DataInfo("ShareUpdateValue", 0, 0, "share_update_value"),
    "SnapshotFooterRecord": DataInfo("SnapshotFooterRecord", 0, 0, "snapshot_footer_record"),
    "SnapshotHeaderRecord": DataInfo("SnapshotHeaderRecord", 0, 0, "snapshot_header_record"),
    "StreamsGroupCurrentMemberAssignmentKey": DataInfo("StreamsGroupCurrentMemberAssignmentKey", 22, 22, "streams_group_current_member_assignment_key"),
    "StreamsGroupCurrentMemberAssignmentValue": DataInfo("StreamsGroupCurrentMemberAssignmentValue", 0, 0, "streams_group_current_member_assignment_value"),
    "StreamsGroupMemberMetadataKey": DataInfo("StreamsGroupMemberMetadataKey", 19, 19, "streams_group_member_metadata_key"),
    "StreamsGroupMemberMetadataValue": DataInfo("StreamsGroupMemberMetadataValue", 0, 0, "streams_group_member_metadata_value"),
    "StreamsGroupMetadataKey": DataInfo("StreamsGroupMetadataKey", 17, 17, "streams_group_metadata_key"),
    "StreamsGroupMetadataValue": DataInfo("StreamsGroupMetadataValue", 0, 0, "streams_group_metadata_value"),
    "StreamsGroupTargetAssignmentMemberKey": DataInfo("StreamsGroupTargetAssignmentMemberKey", 21, 21, "streams_group_target_assignment_member_key"),
    "StreamsGroupTargetAssignmentMemberValue": DataInfo("StreamsGroupTargetAssignmentMemberValue", 0, 0, "streams_group_target_assignment_member_value"),
    "StreamsGroupTargetAssignmentMetadataKey": DataInfo("StreamsGroupTargetAssignmentMetadataKey", 20, 20, "streams_group_target_assignment_metadata_key"),
    "StreamsGroupTargetAssignmentMetadataValue": DataInfo("StreamsGroupTargetAssignmentMetadataValue", 0, 0, "streams_group_target_assignment_metadata_value"),
    "StreamsGroupTopologyKey": DataInfo("StreamsGroupTopologyKey", 23, 23, "streams_group_topology_key"),
    "StreamsGroupTopologyValue": DataInfo("StreamsGroupTopologyValue", 0, 0, "streams_group_topology_value"),
    "TransactionLogKey": DataInfo("TransactionLogKey", 0, 0, "transaction_log_key"),
    "TransactionLogValue": DataInfo("TransactionLogValue", 0, 1, "transaction_log_value"),
    "VotersRecord": DataInfo("VotersRecord", 0, 0, "voters_record"),
}

RECORDS: dict[str, dict[int, tuple[str, str]]] = {
    "__consumer_offsets": {
        0: ("OffsetCommitKey", "OffsetCommitValue"),
        1: ("OffsetCommitKey", "OffsetCommitValue"),
        2: ("GroupMetadataKey", "GroupMetadataValue"),
        3: ("ConsumerGroupMetadataKey", "ConsumerGroupMetadataValue"),
        4: ("ConsumerGroupPartitionMetadataKey", "ConsumerGroupPartitionMetadataValue"),
        5: ("ConsumerGroupMemberMetadataKey", "ConsumerGroupMemberMetadataValue"),
        6: ("ConsumerGroupTargetAssignmentMetadataKey", "ConsumerGroupTargetAssignmentMetadataValue"),
        7: ("ConsumerGroupTargetAssignmentMemberKey", "ConsumerGroupTargetAssignmentMemberValue"),
        8: ("ConsumerGroupCurrentMemberAssignmentKey", "ConsumerGroupCurrentMemberAssignmentValue"),
        10: ("ShareGroupMemberMetadataKey", "ShareGroupMemberMetadataValue"),
        11: ("ShareGroupMetadataKey", "ShareGroupMetadataValue"),
        12: ("ShareGroupTargetAssignmentMetadataKey", "ShareGroupTargetAssignmentMetadataValue"),
        13: ("ShareGroupTargetAssignmentMemberKey", "ShareGroupTargetAssignmentMemberValue"),
        14: ("ShareGroupCurrentMemberAssignmentKey", "ShareGroupCurrentMemberAssignmentValue"),
        15: ("ShareGroupStatePartitionMetadataKey", "ShareGroupStatePartitionMetadataValue"),
        16: ("ConsumerGroupRegularExpressionKey", "ConsumerGroupRegularExpressionValue"),
        17: ("StreamsGroupMetadataKey", "StreamsGroupMetadataValue"),
        19: ("StreamsGroupMemberMetadataKey", "StreamsGroupMemberMetadataValue"),
        20: ("StreamsGroupTargetAssignmentMetadataKey", "StreamsGroupTargetAssignmentMetadataValue"),
        21: ("StreamsGroupTargetAssignmentMemberKey", "StreamsGroupTargetAssignmentMemberValue"),
        22: ("StreamsGroupCurrentMemberAssignmentKey", "StreamsGroupCurrentMemberAssignmentValue"),
        23: ("StreamsGroupTopologyKey", "StreamsGroupTopologyValue"),
    },
    "__share_group_state": {
        0: ("ShareSnapshotKey", "ShareSnapshotValue"),
        1: ("ShareUpdateKey", "ShareUpdateValue"),
    },
    "__transaction_state": {
        0: ("TransactionLogKey", "TransactionLogValue"),
    },
}
"""Maps a topic, then the int16 at the start of a record's key, to the names of the data in key and value."""
