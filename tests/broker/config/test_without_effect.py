"""Each setting of Kafka that has no effect in this broker has one reason."""

from __future__ import annotations

import pytest

from kafkaproto.broker.config.definitions import Setting, definitions_of
from kafkaproto.broker.config.without_effect import REASONS, reason_of


def without_effect(release: str) -> list[Setting]:
    known = definitions_of(release)
    settings = (*known.broker.values(), *known.topic.values(), *known.group.values())
    return [setting for setting in settings if not setting.acts and setting.refusal is None]


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_each_setting_without_effect_has_a_documented_reason_for_no_effect(release: str) -> None:
    assert [setting.name for setting in without_effect(release) if reason_of(setting.name) is None] == []


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_function_reason_of_returns_none_for_each_setting_that_has_an_effect(release: str) -> None:
    known = definitions_of(release)
    acting = [name for table in (known.broker, known.topic, known.group) for name, s in table.items() if s.acts]
    assert [name for name in acting if reason_of(name) is not None] == []


def test_each_reason_why_settings_have_no_effect_applies_to_at_least_1_setting() -> None:
    names = {setting.name for release in ("3.9", "4.2") for setting in without_effect(release)}
    assert {reason_of(name) for name in names} == set(REASONS)
