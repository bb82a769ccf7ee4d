"""Changes of the finalized levels of features, for UpdateFeatures (KIP-584).

Follows `FeatureControlManager` and `MetadataVersion` in Kafka. This module does not depend on wire messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkaproto.broker.config.features import KRAFT_VERSION, METADATA_VERSION, supported_features
from kafkaproto.broker.config.release import is_release_4
from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import hash_order

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
LOWEST_METADATA_VERSION = 4
"""The lowest level of `metadata.version` that clients can set before Kafka 4.0: that of 3.3-IV0. Brokers also report lower levels as supported."""
METADATA_CHANGES = (1, 3, 5, 6, 7, 8, 11, 13, 14, 15, 17, 23)
"""The levels of `metadata.version` that add metadata (`MetadataVersion.didMetadataChange`).

Kafka rejects a downgrade if one of these levels is above the requested level and not above the current level: metadata of that level could be lost.
"""

TEST_FEATURES = frozenset({"test.feature.version", *(f"unit.test.feature.version.{n}" for n in range(8))})
"""The features of Kafka's own tests. Brokers from 4.0 on accept level 0 for them and no other level."""


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """A level that a client requests for a feature. upgrade_type: UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, or an invalid number."""

    feature: str
    level: int
    upgrade_type: int = UPGRADE


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a cluster. levels: maps features to their finalized levels, without levels of 0."""

    release: str
    controller_id: int
    levels: Mapping[str, int]

    def updated(self, updates: Iterable[FeatureUpdate]) -> tuple[dict[str, int], dict[str, KafkaError | None]]:
        """Return (levels after the valid updates, errors): the errors map each updated feature to its error or None (AD-20).

        If a feature has several updates, the last one counts. Updates are checked in Kafka's order: by name before 4.0, in the order of a Java hash
        table from 4.0 on (AD-21). The errors have code INVALID_UPDATE_VERSION (95), or INVALID_REQUEST (42) in releases without features.
        """
        levels = dict(self.levels)
        errors: dict[str, KafkaError | None] = {}
        last_updates = {update.feature: update for update in updates}
        for feature in hash_order(last_updates) if is_release_4(self.release) else sorted(last_updates):
            update = last_updates[feature]
            try:
                self._check(update)
            except KafkaError as error:
                errors[update.feature] = error
                continue
            errors[update.feature] = None
            levels[update.feature] = update.level
            if not update.level:
                del levels[update.feature]
        return levels, errors

    def _check(self, update: FeatureUpdate) -> None:
        """Raise KafkaError if an update is invalid. The order of the checks is that of Kafka."""
        if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            raise _invalid_update(update, "The controller does not support the given upgrade type.")
        if update.level < 0:
            raise _invalid_update(update, "A feature version cannot be less than 0.")
        self._check_support(update)
        current_level = self.levels.get(update.feature, 0)
        if update.level < current_level and update.upgrade_type == UPGRADE:
            raise _invalid_update(
                update,
                "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
                "downgrade.",
            )
        if update.level > current_level and update.upgrade_type != UPGRADE:
            raise _invalid_update(update, "Can't downgrade to a newer version.")
        if update.feature == METADATA_VERSION:
            self._check_metadata(update, current_level)
        elif update.feature == KRAFT_VERSION and update.level < current_level and is_release_4(self.release):
            raise _invalid_update(update, "Can't downgrade the version of this feature.")

    def _check_support(self, update: FeatureUpdate) -> None:
        supported = supported_features(self.release)
        if not supported:
            message = "Could not apply finalized feature update because the provided feature is not supported."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        if update.feature not in supported:
            if update.level:
                raise _invalid_update(update, f"Local controller {self.controller_id} does not support this feature.")
            if is_release_4(self.release) and update.feature not in TEST_FEATURES:
                raise _invalid_update(update, f"Feature {update.feature} not found.")
            return
        lowest, highest = supported[update.feature]
        if not lowest <= update.level <= highest:
            versions = f"only supports versions {lowest}-{highest}"
            raise _invalid_update(update, f"Local controller {self.controller_id} {versions}")

    def _check_metadata(self, update: FeatureUpdate, current: int) -> None:
        """Raise KafkaError if an update of `metadata.version` requests a level that is too low.

        current: the level before the update. A level is too low if metadata could be lost: if an item of METADATA_CHANGES is above the requested
        level, but not above `current`. Before Kafka 4.0, any level below LOWEST_METADATA_VERSION is also too low.
        """
        if update.level < LOWEST_METADATA_VERSION and not is_release_4(self.release):
            reason = "Unable to set a metadata.version less than 3.3-IV0"
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid metadata.version {update.level}. {reason}")
        if not any(update.level < change <= current for change in METADATA_CHANGES):
            return
        if update.upgrade_type == SAFE_DOWNGRADE:
            reason = "Refusing to perform the requested downgrade because it might delete metadata information."
        else:
            reason = "Unsafe metadata downgrade is not supported in this version."
        if is_release_4(self.release):
            text = f"Unsupported metadata.version downgrade from {current} to {update.level}. {reason}"
        else:
            text = f"Invalid metadata.version {update.level}. {reason}"
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, text)


def _invalid_update(update: FeatureUpdate, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.level} for feature {update.feature}. {reason}",
    )
