# Generated from schemas/messages/CreateTopicsRequest.json and CreateTopicsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""CreateTopicsRequest and CreateTopicsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray, CompactNullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import (
    Bool,
    CompactNullableString,
    CompactString,
    Int16,
    Int32,
    Int8,
    NullableString,
    String,
    Uuid,
)
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tagged, Tags


@dataclass(slots=True, eq=False, repr=False)
class CreatableReplicaAssignment(Struct):
    """One item of the list ``CreatableTopic.assignments``."""

    partition_index: int = 0
    broker_ids: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreatableTopicConfig(Struct):
    """One item of the list ``CreatableTopic.configs``."""

    name: str = ""
    value: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreatableTopic(Struct):
    """One item of the list ``CreateTopicsRequest.topics``."""

    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: list[CreatableReplicaAssignment] = field(default_factory=list)
    configs: list[CreatableTopicConfig] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreateTopicsRequest(Whole):
    """Request of API key 19: versions 0 to 7; flexible from version 5 on (KIP-482)."""

    topics: list[CreatableTopic] = field(default_factory=list)
    timeout_ms: int = 60000
    validate_only: bool = False  # v1+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreatableTopicConfigs(Struct):
    """One item of the list ``CreatableTopicResult.configs``."""

    name: str = ""  # v5+
    value: str | None = ""  # v5+
    read_only: bool = False  # v5+
    config_source: int = -1  # v5+, ignorable
    is_sensitive: bool = False  # v5+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreatableTopicResult(Struct):
    """One item of the list ``CreateTopicsResponse.topics``."""

    name: str = ""
    topic_id: bytes = bytes(16)  # v7+, ignorable
    error_code: int = 0
    error_message: str | None = ""  # v1+, ignorable
    topic_config_error_code: int = 0  # v5+, tag 0, ignorable
    num_partitions: int = -1  # v5+, ignorable
    replication_factor: int = -1  # v5+, ignorable
    configs: list[CreatableTopicConfigs] | None = field(default_factory=list)  # v5+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CreateTopicsResponse(Whole):
    """Response of API key 19: versions 0 to 7; flexible from version 5 on (KIP-482)."""

    throttle_time_ms: int = 0  # v2+, ignorable
    topics: list[CreatableTopicResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


CREATABLE_REPLICA_ASSIGNMENT_V0 = Message(
    CreatableReplicaAssignment,
    "partition_index" / Int32,
    "broker_ids" / Array(Int32),
    versions="0-4",
)

CREATABLE_TOPIC_CONFIG_V0 = Message(
    CreatableTopicConfig,
    "name" / String,
    "value" / NullableString,
    versions="0-4",
)

CREATABLE_TOPIC_V0 = Message(
    CreatableTopic,
    "name" / String,
    "num_partitions" / Int32,
    "replication_factor" / Int16,
    "assignments" / Array(CREATABLE_REPLICA_ASSIGNMENT_V0),
    "configs" / Array(CREATABLE_TOPIC_CONFIG_V0),
    versions="0-4",
)

CREATE_TOPICS_REQUEST_V0 = Message(
    CreateTopicsRequest,
    "topics" / Array(CREATABLE_TOPIC_V0),
    "timeout_ms" / Int32,
    versions="0",
    absent=("validate_only",),
)

CREATE_TOPICS_REQUEST_V1 = Message(
    CreateTopicsRequest,
    "topics" / Array(CREATABLE_TOPIC_V0),
    "timeout_ms" / Int32,
    "validate_only" / Bool,
    versions="1-4",
)

CREATE_TOPICS_REQUEST_V2 = CREATE_TOPICS_REQUEST_V1

CREATE_TOPICS_REQUEST_V3 = CREATE_TOPICS_REQUEST_V1

CREATE_TOPICS_REQUEST_V4 = CREATE_TOPICS_REQUEST_V1

CREATABLE_REPLICA_ASSIGNMENT_V5 = Message(
    CreatableReplicaAssignment,
    "partition_index" / Int32,
    "broker_ids" / CompactArray(Int32),
    Tags(),
    versions="5-7",
)

CREATABLE_TOPIC_CONFIG_V5 = Message(
    CreatableTopicConfig,
    "name" / CompactString,
    "value" / CompactNullableString,
    Tags(),
    versions="5-7",
)

CREATABLE_TOPIC_V5 = Message(
    CreatableTopic,
    "name" / CompactString,
    "num_partitions" / Int32,
    "replication_factor" / Int16,
    "assignments" / CompactArray(CREATABLE_REPLICA_ASSIGNMENT_V5),
    "configs" / CompactArray(CREATABLE_TOPIC_CONFIG_V5),
    Tags(),
    versions="5-7",
)

CREATE_TOPICS_REQUEST_V5 = Message(
    CreateTopicsRequest,
    "topics" / CompactArray(CREATABLE_TOPIC_V5),
    "timeout_ms" / Int32,
    "validate_only" / Bool,
    Tags(),
    versions="5-7",
)

CREATE_TOPICS_REQUEST_V6 = CREATE_TOPICS_REQUEST_V5

CREATE_TOPICS_REQUEST_V7 = CREATE_TOPICS_REQUEST_V5

REQUESTS: dict[int, Message[CreateTopicsRequest]] = {
    0: CREATE_TOPICS_REQUEST_V0,
    1: CREATE_TOPICS_REQUEST_V1,
    2: CREATE_TOPICS_REQUEST_V2,
    3: CREATE_TOPICS_REQUEST_V3,
    4: CREATE_TOPICS_REQUEST_V4,
    5: CREATE_TOPICS_REQUEST_V5,
    6: CREATE_TOPICS_REQUEST_V6,
    7: CREATE_TOPICS_REQUEST_V7,
}
CreateTopicsRequest.layouts = REQUESTS

CREATABLE_TOPIC_RESULT_V0 = Message(
    CreatableTopicResult,
    "name" / String,
    "error_code" / Int16,
    versions="0",
)

CREATE_TOPICS_RESPONSE_V0 = Message(
    CreateTopicsResponse,
    "topics" / Array(CREATABLE_TOPIC_RESULT_V0),
    versions="0",
)

CREATABLE_TOPIC_RESULT_V1 = Message(
    CreatableTopicResult,
    "name" / String,
    "error_code" / Int16,
    "error_message" / NullableString,
    versions="1-4",
)

CREATE_TOPICS_RESPONSE_V1 = Message(
    CreateTopicsResponse,
    "topics" / Array(CREATABLE_TOPIC_RESULT_V1),
    versions="1",
)

CREATE_TOPICS_RESPONSE_V2 = Message(
    CreateTopicsResponse,
    "throttle_time_ms" / Int32,
    "topics" / Array(CREATABLE_TOPIC_RESULT_V1),
    versions="2-4",
)

CREATE_TOPICS_RESPONSE_V3 = CREATE_TOPICS_RESPONSE_V2

CREATE_TOPICS_RESPONSE_V4 = CREATE_TOPICS_RESPONSE_V2

CREATABLE_TOPIC_CONFIGS_V5 = Message(
    CreatableTopicConfigs,
    "name" / CompactString,
    "value" / CompactNullableString,
    "read_only" / Bool,
    "config_source" / Int8,
    "is_sensitive" / Bool,
    Tags(),
    versions="5-7",
)

CREATABLE_TOPIC_RESULT_V5 = Message(
    CreatableTopicResult,
    "name" / CompactString,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "num_partitions" / Int32,
    "replication_factor" / Int16,
    "configs" / CompactNullableArray(CREATABLE_TOPIC_CONFIGS_V5),
    Tags(
        Tagged(0, "topic_config_error_code" / Int16),
    ),
    versions="5-6",
)

CREATE_TOPICS_RESPONSE_V5 = Message(
    CreateTopicsResponse,
    "throttle_time_ms" / Int32,
    "topics" / CompactArray(CREATABLE_TOPIC_RESULT_V5),
    Tags(),
    versions="5-6",
)

CREATE_TOPICS_RESPONSE_V6 = CREATE_TOPICS_RESPONSE_V5

CREATABLE_TOPIC_RESULT_V7 = Message(
    CreatableTopicResult,
    "name" / CompactString,
    "topic_id" / Uuid,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "num_partitions" / Int32,
    "replication_factor" / Int16,
    "configs" / CompactNullableArray(CREATABLE_TOPIC_CONFIGS_V5),
    Tags(
        Tagged(0, "topic_config_error_code" / Int16),
    ),
    versions="7",
)

CREATE_TOPICS_RESPONSE_V7 = Message(
    CreateTopicsResponse,
    "throttle_time_ms" / Int32,
    "topics" / CompactArray(CREATABLE_TOPIC_RESULT_V7),
    Tags(),
    versions="7",
)

RESPONSES: dict[int, Message[CreateTopicsResponse]] = {
    0: CREATE_TOPICS_RESPONSE_V0,
    1: CREATE_TOPICS_RESPONSE_V1,
    2: CREATE_TOPICS_RESPONSE_V2,
    3: CREATE_TOPICS_RESPONSE_V3,
    4: CREATE_TOPICS_RESPONSE_V4,
    5: CREATE_TOPICS_RESPONSE_V5,
    6: CREATE_TOPICS_RESPONSE_V6,
    7: CREATE_TOPICS_RESPONSE_V7,
}
CreateTopicsResponse.layouts = RESPONSES
