"""The defaults of the group coordinator's settings."""

from __future__ import annotations

import dataclasses

from kafkaproto.broker.config.definitions import BROKER_SETTINGS
from kafkaproto.broker.group.settings import GroupSettings


def test_the_defaults_are_those_of_the_broker_settings() -> None:
    defaults = {name.replace(".", "_"): setting.default for name, setting in BROKER_SETTINGS.items()}
    retention_minutes = defaults["offsets_retention_minutes"]
    assert isinstance(retention_minutes, int)
    defaults["offsets_retention_ms"] = retention_minutes * 60_000
    settings = dataclasses.asdict(GroupSettings())
    assert settings == {name: defaults[name] for name in settings}
