"""Default values of the group coordinator's settings."""

from __future__ import annotations

import dataclasses

from kafkaproto.broker.config.definitions import definitions_of
from kafkaproto.broker.group.settings import GroupSettings


def test_defaults_of_group_coordinator_settings_equal_the_broker_setting_defaults() -> None:
    defaults = {name.replace(".", "_"): setting.default for name, setting in definitions_of("3.9").broker.items()}
    retention_minutes = defaults["offsets_retention_minutes"]
    assert isinstance(retention_minutes, int)
    defaults["offsets_retention_ms"] = retention_minutes * 60_000
    settings = dataclasses.asdict(GroupSettings())
    assert settings == {name: defaults[name] for name in settings}
