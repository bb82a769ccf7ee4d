"""Each setting of Kafka that has no effect in this broker has one reason."""

from __future__ import annotations

import re

import pytest

from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.config.definitions import Setting, definitions_of
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.config.without_effect import REASONS, reason_of


def without_effect(release: str) -> list[Setting]:
    definitions = definitions_of(release)
    settings = (*definitions.broker.values(), *definitions.topic.values(), *definitions.group.values())
    return [setting for setting in settings if not setting.acts and setting.refusal is None]


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_each_setting_without_effect_has_a_documented_reason_for_no_effect(release: str) -> None:
    assert [setting.name for setting in without_effect(release) if reason_of(setting.name) is None] == []


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_no_setting_that_has_an_effect_is_documented_as_having_no_effect(release: str) -> None:
    definitions = definitions_of(release)
    acting = [
        name
        for table in (definitions.broker, definitions.topic, definitions.group)
        for name, s in table.items()
        if s.acts
    ]
    assert [name for name in acting if reason_of(name) is not None] == []


def test_each_documented_reason_for_no_effect_applies_to_at_least_one_setting() -> None:
    names = {setting.name for release in ("3.9", "4.2") for setting in without_effect(release)}
    assert {reason_of(name) for name in names} == set(REASONS)


def test_each_name_pattern_for_settings_without_effect_matches_at_least_one_setting() -> None:
    names = {setting.name for release in ("3.9", "4.2") for setting in without_effect(release)}
    patterns = [pattern for text in REASONS.values() for pattern in text.split()]
    assert [pattern for pattern in patterns if not any(re.fullmatch(pattern, name) for name in names)] == []


def test_reasons_why_settings_of_kafka_4_2_have_no_effect_do_not_mention_kafka_3_9_1() -> None:
    about_3_9 = {setting.name for setting in without_effect("3.9") if "Kafka 3.9.1" in (reason_of(setting.name) or "")}
    assert about_3_9 and about_3_9.isdisjoint(setting.name for setting in without_effect("4.2"))


@pytest.mark.parametrize("release", ["3.9", "4.2"])
@pytest.mark.parametrize("name", ["unstable.api.versions.enable", "unstable.feature.versions.enable"])
def test_settings_that_enable_unstable_api_or_feature_versions_accept_only_false(release: str, name: str) -> None:
    assert ClusterConfig({name: "false"}, release=release).for_broker(0)[name] is False
    with pytest.raises(ConfigError, match=f"^{name} must be false .*only for tests"):
        ClusterConfig({name: "true"}, release=release)
