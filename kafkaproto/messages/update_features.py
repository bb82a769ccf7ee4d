# Generated from schemas/messages/UpdateFeaturesRequest.json and UpdateFeaturesResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""UpdateFeaturesRequest and UpdateFeaturesResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, Int8
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class FeatureUpdateKey(Struct):
    """One item of the list ``UpdateFeaturesRequest.feature_updates``."""

    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False  # v0
    upgrade_type: int = 1  # v1+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class UpdateFeaturesRequest(Whole):
    """Request of API key 57: versions 0 to 2; all flexible (KIP-482)."""

    timeout_ms: int = 60000
    feature_updates: list[FeatureUpdateKey] = field(default_factory=list)
    validate_only: bool = False  # v1+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class UpdatableFeatureResult(Struct):
    """One item of the list ``UpdateFeaturesResponse.results``."""

    feature: str = ""
    error_code: int = 0
    error_message: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class UpdateFeaturesResponse(Whole):
    """Response of API key 57: versions 0 to 2; all flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[UpdatableFeatureResult] = field(default_factory=list)  # v0-1, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


FEATURE_UPDATE_KEY_V0 = Message(
    FeatureUpdateKey,
    "feature" / CompactString,
    "max_version_level" / Int16,
    "allow_downgrade" / Bool,
    Tags(),
    versions="0",
    absent=("upgrade_type",),
)

UPDATE_FEATURES_REQUEST_V0 = Message(
    UpdateFeaturesRequest,
    "timeout_ms" / Int32,
    "feature_updates" / CompactArray(FEATURE_UPDATE_KEY_V0),
    Tags(),
    versions="0",
    absent=("validate_only",),
)

FEATURE_UPDATE_KEY_V1 = Message(
    FeatureUpdateKey,
    "feature" / CompactString,
    "max_version_level" / Int16,
    "upgrade_type" / Int8,
    Tags(),
    versions="1-2",
    absent=("allow_downgrade",),
)

UPDATE_FEATURES_REQUEST_V1 = Message(
    UpdateFeaturesRequest,
    "timeout_ms" / Int32,
    "feature_updates" / CompactArray(FEATURE_UPDATE_KEY_V1),
    "validate_only" / Bool,
    Tags(),
    versions="1-2",
)

UPDATE_FEATURES_REQUEST_V2 = UPDATE_FEATURES_REQUEST_V1

REQUESTS: dict[int, Message[UpdateFeaturesRequest]] = {
    0: UPDATE_FEATURES_REQUEST_V0,
    1: UPDATE_FEATURES_REQUEST_V1,
    2: UPDATE_FEATURES_REQUEST_V2,
}
UpdateFeaturesRequest.layouts = REQUESTS

UPDATABLE_FEATURE_RESULT_V0 = Message(
    UpdatableFeatureResult,
    "feature" / CompactString,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="0-1",
)

UPDATE_FEATURES_RESPONSE_V0 = Message(
    UpdateFeaturesResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "results" / CompactArray(UPDATABLE_FEATURE_RESULT_V0),
    Tags(),
    versions="0-1",
)

UPDATE_FEATURES_RESPONSE_V1 = UPDATE_FEATURES_RESPONSE_V0

UPDATE_FEATURES_RESPONSE_V2 = Message(
    UpdateFeaturesResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="2",
)

RESPONSES: dict[int, Message[UpdateFeaturesResponse]] = {
    0: UPDATE_FEATURES_RESPONSE_V0,
    1: UPDATE_FEATURES_RESPONSE_V1,
    2: UPDATE_FEATURES_RESPONSE_V2,
}
UpdateFeaturesResponse.layouts = RESPONSES
