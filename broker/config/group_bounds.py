"""The limits within which the group settings of a broker must be when it starts (GN-67), as in Kafka's `*GroupConfig` and `ShareGroupConfig`."""

from __future__ import annotations

from collections.abc import Collection

from kafkaproto.broker.config.cluster_config import BrokerConfig
from kafkaproto.broker.config.java_text import java_items
from kafkaproto.broker.config.values import ConfigError

KAFKAS_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor."
_INTERVAL, _TIMEOUT = "heartbeat.interval.ms", "session.timeout.ms"
_BOUNDED = (
    f"group.consumer.{_INTERVAL}",
    f"group.consumer.{_TIMEOUT}",
    f"group.share.{_INTERVAL}",
    f"group.share.{_TIMEOUT}",
    "group.share.record.lock.duration.ms",
    f"group.streams.{_INTERVAL}",
    f"group.streams.{_TIMEOUT}",
)
"""Settings `group.<kind>.<name>` whose value must be from that of `group.<kind>.min.<name>` to that of `group.<kind>.max.<name>`."""
_MOST = (
    ("group.share.max.size", "group.share.max.share.sessions"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
)
"""Pairs of settings. The value of the first setting must not exceed the value of the second."""
_SHARE_ASSIGNORS = "group.share.assignors"
_COMMIT_ACKS, _OFFSETS_FACTOR = "offsets.commit.required.acks", "offsets.topic.replication.factor"


def check_group_bounds(get: BrokerConfig, known: Collection[str], *, is_release_4: bool) -> None:
    """Raise ConfigError if a group setting of a broker is outside its limits, or if `group.share.assignors` is not Kafka's only assignor.

    Kafka checks this when a broker starts. get: the settings of the broker. known: the names of the broker settings of the emulated release; others
    are not checked. is_release_4: whether the release is Kafka 4.0 or later; each heartbeat interval must then be below the session timeout.
    """
    if _COMMIT_ACKS in known and not -1 <= get[_COMMIT_ACKS] <= get[_OFFSETS_FACTOR]:
        factor = get[_OFFSETS_FACTOR]
        raise ConfigError(f"{_COMMIT_ACKS} must be from -1 to {_OFFSETS_FACTOR} ({factor}) (got {get[_COMMIT_ACKS]})")
    for name in _BOUNDED:
        if name not in known:
            continue
        kind, setting = name.split(".", 2)[1:]
        lowest, highest = (f"group.{kind}.{bound}.{setting}" for bound in ("min", "max"))
        if not get[lowest] <= get[name] <= get[highest]:
            raise ConfigError(
                f"{name} must be from {lowest} ({get[lowest]}) to {highest} ({get[highest]}) (got {get[name]})"
            )
        interval = f"group.{kind}.{_INTERVAL}"
        if is_release_4 and setting == _TIMEOUT and get[interval] >= get[name]:
            raise ConfigError(f"{interval} must be below {name} ({get[name]}) (got {get[interval]})")
    for name, limit in _MOST:
        if name in known and limit in known and get[name] > get[limit]:
            raise ConfigError(f"{name} must be at most {limit} ({get[limit]}) (got {get[name]})")
    if _SHARE_ASSIGNORS in known:
        items = dict.fromkeys(java_items(get[_SHARE_ASSIGNORS]))
        if list(items) not in (["simple"], [f"{KAFKAS_ASSIGNORS}SimpleAssignor"]):
            raise ConfigError(f'{_SHARE_ASSIGNORS} must be simple (got "{get[_SHARE_ASSIGNORS]}")')
