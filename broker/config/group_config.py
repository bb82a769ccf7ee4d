"""The settings of a group: the config resource of type 32 (KIP-848).

Follows `GroupConfig` in Kafka, also in the messages about invalid settings. This module does not depend on wire messages.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping

from kafkaproto.broker.config.client_metrics import Configured
from kafkaproto.broker.config.definitions import Setting
from kafkaproto.broker.config.values import ConfigError, parse
from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import properties_order

_LIMITED = (
    *("consumer.heartbeat.interval.ms", "consumer.session.timeout.ms", "share.heartbeat.interval.ms"),
    *("share.session.timeout.ms", "share.record.lock.duration.ms", "streams.heartbeat.interval.ms"),
    *("streams.session.timeout.ms", "streams.num.standby.replicas"),
)
"""The settings of a group that must be within limits of the broker, in the order in which Kafka compares them (`GroupConfig.validateValues`)."""


class GroupResource:
    """The settings of a group. The group need not exist yet."""

    bad_value = ErrorCode.INVALID_CONFIG

    def __init__(self, cluster: Configured, broker_id: int, group_id: str) -> None:
        self._cluster = cluster
        self._broker_id = broker_id
        self._group_id = group_id

    @property
    def current_settings(self) -> Mapping[str, str]:
        return self._cluster.config.groups.get(self._group_id, {})

    def setting(self, name: str) -> Setting:
        """Return a definition of the setting `name` that accepts any text: this method does not check the value.

        Kafka checks all settings of a group together, after all changes of a request. The definition has the type string, because no setting of a
        group is a list.
        """
        return Setting(name, "string")

    def check_deletion(self, name: str) -> None:
        """Accept the deletion of any setting `name`, even of one that does not exist."""

    def check(self, own: Mapping[str, str]) -> None:
        """Check all settings that a group would have after a change. own: maps the names of these settings to their text.

        Raises KafkaError INVALID_REQUEST (42) for the empty group id. Raises ConfigError for the first failed check, in Kafka's order: an unknown
        name, an invalid value, a value outside the broker's limits, a session timeout that is too short.
        """
        if not self._group_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        config = self._cluster.config
        definitions = config.definitions.group
        for name in properties_order(own):
            if name not in definitions:
                raise ConfigError(f"Unknown group config name: {name}")
        for name in sorted(own, key=lambda name: definitions[name].place):
            check_value(definitions[name], own[name])
        for name in (name for name in _LIMITED if name in own):
            kind, _, suffix = name.partition(".")
            value = config.group_value(self._broker_id, own, name)
            for limit, too_far in (("min", operator.lt), ("max", operator.gt)):
                broker_setting = f"group.{kind}.{limit}.{suffix.removeprefix('num.')}"
                if broker_setting in config.definitions.broker and too_far(
                    value, config.get(self._broker_id, broker_setting)
                ):
                    greater_or_less = "greater" if limit == "min" else "less"
                    raise ConfigError(f"{name} must be {greater_or_less} than or equal to {broker_setting}")
        for kind in ("consumer", "share", "streams"):
            session_setting, heartbeat_setting = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
            session_ms, heartbeat_ms = (
                config.group_value(self._broker_id, own, name) for name in (session_setting, heartbeat_setting)
            )
            if session_ms <= heartbeat_ms:
                raise ConfigError(f"{session_setting} must be greater than {heartbeat_setting}")

    def store(self, own: Mapping[str, str]) -> None:
        self._cluster.remember_config(self._group_id, own)
        self._cluster.config.set_group(self._group_id, own)


def check_value(setting: Setting, text: str, strict_kip: bool = False) -> None:
    """Raise ConfigError if the value `text` of a setting is invalid. The message is that of Kafka's `ConfigDef`.

    If this broker rejects some values of the setting that Kafka accepts (`Setting.refusal`), the message is this broker's own. strict_kip: whether to
    follow the KIPs and documentation where they differ from Kafka's code (D10).
    """
    try:
        parse(setting, text, strict_kip)
    except ConfigError:
        if setting.refusal is not None:
            raise
        from kafkaproto.broker.config.rejections import rejection

        raise ConfigError(rejection(setting, text)) from None
