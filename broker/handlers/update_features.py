"""UpdateFeatures (key 57, versions 0-2): change the finalized levels of features (KIP-584).

v0 has a flag that should allow a downgrade; Kafka ignores the flag. v1 replaces the flag by an upgrade type, and adds validation without a change
(KIP-778); the response of v2 has no results of the individual features.
Behaviour: before Kafka 4.0 each feature is changed or has an error; from 4.0 on all are changed or none, and the response has the first error. The
next ApiVersions response has the new levels (AD-19 to AD-21).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.feature_levels import UPGRADE, Features, FeatureUpdate
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.features import finalize
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.update_features import UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse

FIRST_VERSION_WITH_TYPES, FIRST_VERSION_WITHOUT_RESULTS = 1, 2
ALL_FAILED = "The update failed for all features since the following feature had an error: "


def _failed(exchange: Exchange, request: UpdateFeaturesRequest, error_code: int) -> Reply:
    return Reply(UpdateFeaturesResponse(error_code=int(error_code), error_message=None))


@register(ApiKey.UPDATE_FEATURES, _failed)
def update_features(exchange: Exchange, request: UpdateFeaturesRequest) -> Reply:
    node, image = exchange.node, exchange.node.image
    has_types = exchange.api_version >= FIRST_VERSION_WITH_TYPES
    updates = [
        FeatureUpdate(u.feature, u.max_version_level, u.upgrade_type if has_types else UPGRADE)
        for u in request.feature_updates
    ]
    features = Features(node.cluster.release_name, min(image.brokers), image.features)
    levels, errors = features.updated(updates)
    first_error = next((error for error in errors.values() if error is not None), None)
    if node.is_release_4 and first_error is not None:
        message = ALL_FAILED + (first_error.message or "")
        return Reply(UpdateFeaturesResponse(error_code=first_error.error_code, error_message=message))
    if levels != image.features and not request.validate_only:
        finalize(node.cluster, levels)
    if not node.is_release_4:
        return Reply(UpdateFeaturesResponse(results=[_result(name, error) for name, error in errors.items()]))
    response = UpdateFeaturesResponse(error_message=None)
    if exchange.api_version < FIRST_VERSION_WITHOUT_RESULTS:
        response.results = [UpdatableFeatureResult(u.feature, 0, "NONE") for u in request.feature_updates]
    return Reply(response)


def _result(feature: str, error: KafkaError | None) -> UpdatableFeatureResult:
    if error is None:
        return UpdatableFeatureResult(feature, 0, None)
    return UpdatableFeatureResult(feature, error.error_code, error.message)
