# Generated from schemas/messages/AlterUserScramCredentialsRequest.json and AlterUserScramCredentialsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""AlterUserScramCredentialsRequest and AlterUserScramCredentialsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactBytes, CompactNullableString, CompactString, Int16, Int32, Int8
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ScramCredentialDeletion(Struct):
    """One item of the list ``AlterUserScramCredentialsRequest.deletions``."""

    name: str = ""
    mechanism: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ScramCredentialUpsertion(Struct):
    """One item of the list ``AlterUserScramCredentialsRequest.upsertions``."""

    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterUserScramCredentialsRequest(Whole):
    """Request of API key 51: version 0; flexible (KIP-482)."""

    deletions: list[ScramCredentialDeletion] = field(default_factory=list)
    upsertions: list[ScramCredentialUpsertion] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterUserScramCredentialsResult(Struct):
    """One item of the list ``AlterUserScramCredentialsResponse.results``."""

    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterUserScramCredentialsResponse(Whole):
    """Response of API key 51: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    results: list[AlterUserScramCredentialsResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


SCRAM_CREDENTIAL_DELETION_V0 = Message(
    ScramCredentialDeletion,
    "name" / CompactString,
    "mechanism" / Int8,
    Tags(),
    versions="0",
)

SCRAM_CREDENTIAL_UPSERTION_V0 = Message(
    ScramCredentialUpsertion,
    "name" / CompactString,
    "mechanism" / Int8,
    "iterations" / Int32,
    "salt" / CompactBytes,
    "salted_password" / CompactBytes,
    Tags(),
    versions="0",
)

ALTER_USER_SCRAM_CREDENTIALS_REQUEST_V0 = Message(
    AlterUserScramCredentialsRequest,
    "deletions" / CompactArray(SCRAM_CREDENTIAL_DELETION_V0),
    "upsertions" / CompactArray(SCRAM_CREDENTIAL_UPSERTION_V0),
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[AlterUserScramCredentialsRequest]] = {
    0: ALTER_USER_SCRAM_CREDENTIALS_REQUEST_V0,
}
AlterUserScramCredentialsRequest.layouts = REQUESTS

ALTER_USER_SCRAM_CREDENTIALS_RESULT_V0 = Message(
    AlterUserScramCredentialsResult,
    "user" / CompactString,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0",
)

ALTER_USER_SCRAM_CREDENTIALS_RESPONSE_V0 = Message(
    AlterUserScramCredentialsResponse,
    "throttle_time_ms" / Int32,
    "results" / CompactArray(ALTER_USER_SCRAM_CREDENTIALS_RESULT_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[AlterUserScramCredentialsResponse]] = {
    0: ALTER_USER_SCRAM_CREDENTIALS_RESPONSE_V0,
}
AlterUserScramCredentialsResponse.layouts = RESPONSES
