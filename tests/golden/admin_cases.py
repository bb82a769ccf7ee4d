"""Requests of each version of the admin APIs, registered in `api_runs.CASES` when this module is imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkaproto.messages.add_raft_voter import AddRaftVoterRequest, Listener
from kafkaproto.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkaproto.messages.create_acls import AclCreation, CreateAclsRequest
from kafkaproto.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from kafkaproto.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafkaproto.messages.describe_acls import DescribeAclsRequest
from kafkaproto.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kafkaproto.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from kafkaproto.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from kafkaproto.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kafkaproto.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kafkaproto.messages.list_config_resources import ListConfigResourcesRequest
from kafkaproto.messages.push_telemetry import PushTelemetryRequest
from kafkaproto.messages.remove_raft_voter import RemoveRaftVoterRequest
from kafkaproto.messages.renew_delegation_token import RenewDelegationTokenRequest
from kafkaproto.messages.sasl_authenticate import SaslAuthenticateRequest
from kafkaproto.messages.sasl_handshake import SaslHandshakeRequest
from kafkaproto.messages.unregister_broker import UnregisterBrokerRequest
from kafkaproto.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.golden.api_runs import requests_of
from tests.golden.world import World


@requests_of("DescribeTopicPartitions")
def describe_topic_partitions_requests(world: World, version: int) -> Iterator[Any]:
    names = [TopicRequest(name) for name in ("payments", "orders", "missing", "bad name", "orders")]
    yield DescribeTopicPartitionsRequest()
    yield DescribeTopicPartitionsRequest(names)
    yield DescribeTopicPartitionsRequest(names, 2)
    for topic, index in (("orders", 1), ("orders", -1), ("orders", 9), ("absent", 0)):
        yield DescribeTopicPartitionsRequest(names, 2, DescribeTopicPartitionsRequestCursor(topic, index))
    yield DescribeTopicPartitionsRequest([], 2, DescribeTopicPartitionsRequestCursor("orders", 1))
    yield DescribeTopicPartitionsRequest([TopicRequest("")])


@requests_of("ListConfigResources")
def list_config_resources_requests(world: World, version: int) -> Iterator[Any]:
    yield ListConfigResourcesRequest()
    if version >= 1:
        for types in ([2], [4, 8], [16, 32], [2, 99]):
            yield ListConfigResourcesRequest(types)


@requests_of("DescribeQuorum")
def describe_quorum_requests(world: World, version: int) -> Iterator[Any]:
    partition_0, partition_1 = DescribeQuorumRequestPartitionData(0), DescribeQuorumRequestPartitionData(1)
    for partitions in ([partition_0], [partition_1], [partition_0, partition_1], []):
        yield DescribeQuorumRequest([DescribeQuorumRequestTopicData("__cluster_metadata", partitions)])
    yield DescribeQuorumRequest([DescribeQuorumRequestTopicData("orders", [partition_0])])
    yield DescribeQuorumRequest([])


@requests_of("UnregisterBroker")
def unregister_broker_requests(world: World, version: int) -> Iterator[Any]:
    for broker_id in (99, 2, 2):
        yield UnregisterBrokerRequest(broker_id)


@requests_of("AddRaftVoter")
def add_raft_voter_requests(world: World, version: int) -> Iterator[Any]:
    listener = Listener("CONTROLLER", "host", 9)
    for cluster_id, voter_id, directory, listeners in (
        ("another", 7, b"1" * 16, [listener]),
        (None, 7, bytes(16), [listener]),
        (None, 7, b"1" * 16, []),
        (None, 7, b"1" * 16, [listener]),
    ):
        yield AddRaftVoterRequest(cluster_id, 1000, voter_id, directory, listeners)


@requests_of("RemoveRaftVoter")
def remove_raft_voter_requests(world: World, version: int) -> Iterator[Any]:
    for cluster_id, directory in (("another", b"1" * 16), (None, bytes(16)), (None, b"1" * 16)):
        yield RemoveRaftVoterRequest(cluster_id, 0, directory)


@requests_of("SaslHandshake")
def sasl_handshake_requests(world: World, version: int) -> Iterator[Any]:
    for mechanism in ("PLAIN", ""):
        yield SaslHandshakeRequest(mechanism)


@requests_of("SaslAuthenticate")
def sasl_authenticate_requests(world: World, version: int) -> Iterator[Any]:
    yield SaslAuthenticateRequest(b"\0user\0secret")


ACL = 2, "orders", 3, "User:a", "*", 3, 3


@requests_of("DescribeAcls")
def describe_acls_requests(world: World, version: int) -> Iterator[Any]:
    yield DescribeAclsRequest(*ACL)


@requests_of("CreateAcls")
def create_acls_requests(world: World, version: int) -> Iterator[Any]:
    for acls in ([AclCreation(*ACL), AclCreation(*ACL)], []):
        yield CreateAclsRequest(acls)


@requests_of("DeleteAcls")
def delete_acls_requests(world: World, version: int) -> Iterator[Any]:
    for filters in ([DeleteAclsFilter(*ACL)], []):
        yield DeleteAclsRequest(filters)


@requests_of("CreateDelegationToken")
def create_delegation_token_requests(world: World, version: int) -> Iterator[Any]:
    for kind, name in (("", ""), ("User", "bob"), (None, "bob"))[: 3 if version >= 3 else 1]:
        yield CreateDelegationTokenRequest(kind, name, [CreatableRenewers("User", "a")], 1000)


@requests_of("RenewDelegationToken")
def renew_delegation_token_requests(world: World, version: int) -> Iterator[Any]:
    yield RenewDelegationTokenRequest(b"hmac", 10)


@requests_of("ExpireDelegationToken")
def expire_delegation_token_requests(world: World, version: int) -> Iterator[Any]:
    yield ExpireDelegationTokenRequest(b"hmac", 10)


@requests_of("DescribeDelegationToken")
def describe_delegation_token_requests(world: World, version: int) -> Iterator[Any]:
    for owners in (None, [DescribeDelegationTokenOwner("User", "a")]):
        yield DescribeDelegationTokenRequest(owners)


@requests_of("AlterUserScramCredentials")
def alter_user_scram_credentials_requests(world: World, version: int) -> Iterator[Any]:
    added = [ScramCredentialUpsertion(user, 1, 4096, b"salt", b"password") for user in ("a", "b", "c", "c")]
    yield AlterUserScramCredentialsRequest([], added)
    yield AlterUserScramCredentialsRequest([ScramCredentialDeletion("a", 1), ScramCredentialDeletion("d", 1)], [])
    yield AlterUserScramCredentialsRequest([], [ScramCredentialUpsertion("b", 3, 4096, b"salt", b"password")])


@requests_of("UpdateFeatures")
def update_features_requests(world: World, version: int) -> Iterator[Any]:
    for feature, level, upgrade_type in (
        ("missing", 1, 1),
        ("metadata.version", 99, 1),
        ("metadata.version", 20, 1),
        ("metadata.version", 20, 2),
        ("kraft.version", 1, 1),
        ("transaction.version", 1, 2),
    ):
        update = FeatureUpdateKey(feature, level, upgrade_type=upgrade_type if version else 1)
        yield UpdateFeaturesRequest(60_000, [update, FeatureUpdateKey("kraft.version", 1)])
        if version:
            yield UpdateFeaturesRequest(60_000, [update], True)
        yield UpdateFeaturesRequest(60_000, [update])


@requests_of("GetTelemetrySubscriptions")
def get_telemetry_subscriptions_requests(world: World, version: int) -> Iterator[Any]:
    yield GetTelemetrySubscriptionsRequest(bytes(16))
    yield GetTelemetrySubscriptionsRequest(bytes([7] * 16))
    yield GetTelemetrySubscriptionsRequest(bytes([7] * 16))


@requests_of("PushTelemetry")
def push_telemetry_requests(world: World, version: int) -> Iterator[Any]:
    yield PushTelemetryRequest(bytes(16))
    yield PushTelemetryRequest(bytes([7] * 16), 5, False, 0, b"metrics")
    yield PushTelemetryRequest(bytes([7] * 16), 5, True, 9, b"metrics")
