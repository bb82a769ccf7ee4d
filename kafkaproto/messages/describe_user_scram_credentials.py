# Generated from schemas/messages/DescribeUserScramCredentialsRequest.json and DescribeUserScramCredentialsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeUserScramCredentialsRequest and DescribeUserScramCredentialsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray, CompactNullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int8
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class UserName(Struct):
    """One item of the list ``DescribeUserScramCredentialsRequest.users``."""

    name: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeUserScramCredentialsRequest(Whole):
    """Request of API key 50: version 0; flexible (KIP-482)."""

    users: list[UserName] | None = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CredentialInfo(Struct):
    """One item of the list ``DescribeUserScramCredentialsResult.credential_infos``."""

    mechanism: int = 0
    iterations: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeUserScramCredentialsResult(Struct):
    """One item of the list ``DescribeUserScramCredentialsResponse.results``."""

    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeUserScramCredentialsResponse(Whole):
    """Response of API key 50: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


USER_NAME_V0 = Message(
    UserName,
    "name" / CompactString,
    Tags(),
    versions="0",
)

DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST_V0 = Message(
    DescribeUserScramCredentialsRequest,
    "users" / CompactNullableArray(USER_NAME_V0),
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[DescribeUserScramCredentialsRequest]] = {
    0: DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST_V0,
}
DescribeUserScramCredentialsRequest.layouts = REQUESTS

CREDENTIAL_INFO_V0 = Message(
    CredentialInfo,
    "mechanism" / Int8,
    "iterations" / Int32,
    Tags(),
    versions="0",
)

DESCRIBE_USER_SCRAM_CREDENTIALS_RESULT_V0 = Message(
    DescribeUserScramCredentialsResult,
    "user" / CompactString,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "credential_infos" / CompactArray(CREDENTIAL_INFO_V0),
    Tags(),
    versions="0",
)

DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE_V0 = Message(
    DescribeUserScramCredentialsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "results" / CompactArray(DESCRIBE_USER_SCRAM_CREDENTIALS_RESULT_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[DescribeUserScramCredentialsResponse]] = {
    0: DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE_V0,
}
DescribeUserScramCredentialsResponse.layouts = RESPONSES
