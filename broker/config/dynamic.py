"""Settings that are changed while brokers run, whichever API asks: of a topic, of one broker, of all brokers (`ConfigAdminManager`).

A resource tells what it has of its own and takes the whole of that anew; `applied` works out the whole from single operations.
Must never know wire messages. Everything here raises KafkaError: 3 (no such topic), 40 (a topic's settings), 42 (a broker's, and what
makes no sense), 56 (it cannot be remembered).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeVar

from kafkaproto.broker.config.definitions import Setting
from kafkaproto.broker.config.values import ClusterConfig, ConfigError, as_text, broker_setting, parse, topic_setting
from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode

TOPIC, BROKER = 2, 4
ALL_BROKERS = -1


class Operation(IntEnum):
    """As IncrementalAlterConfigs numbers them (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Change:
    """One operation on one setting. `operation` may be a number that is none of them."""

    name: str
    operation: int
    value: str | None


class TopicConfigs(Protocol):
    """Who has the settings of topics: the controller."""

    def topic_configs(self, name: str) -> Mapping[str, str] | None:
        """Return a topic's own settings, None if there is no such topic."""

    def set_topic_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace a topic's own settings. Raises KafkaError."""


class Configured(Protocol):
    """A cluster whose settings change."""

    @property
    def config(self) -> ClusterConfig: ...

    @property
    def controller(self) -> TopicConfigs: ...

    def remember_config(self, broker_id: int, layer: Mapping[str, str]) -> None:
        """Persist the settings of a broker (-1: of all) before they change. Raises KafkaError 56."""

    def setting_changed(self) -> None:
        """Have everything that keeps a copy of a broker setting take over the new value."""


class ConfiguredBroker(Protocol):
    """The broker that a request reached."""

    @property
    def broker_id(self) -> int: ...

    @property
    def cluster(self) -> Configured: ...


class Resource(Protocol):
    """Whose settings are changed. bad_value: the error code for a value or a name that cannot be."""

    bad_value: ErrorCode

    @property
    def own(self) -> Mapping[str, str]:
        """What it has of its own."""

    def setting(self, name: str) -> Setting:
        """Raises ConfigError for an unknown name, KafkaError for one that cannot be changed."""

    def check_deletion(self, name: str) -> None:
        """The same for one that is to be taken away."""

    def in_force(self, name: str) -> str:
        """The value that holds, wherever it comes from."""

    def check(self, own: Mapping[str, str]) -> None:
        """Raises ConfigError when these, each of which may be, cannot be together."""

    def store(self, own: Mapping[str, str]) -> None:
        """Have these of its own from now on."""


class TopicResource:
    """The settings of a topic, as broker `broker_id` sees what it inherits."""

    bad_value = ErrorCode.INVALID_CONFIG

    def __init__(self, cluster: Configured, broker_id: int, name: str) -> None:
        configs = cluster.controller.topic_configs(name)
        if configs is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        self.own = configs
        self._name = name
        self._cluster = cluster
        self._broker_id = broker_id

    def setting(self, name: str) -> Setting:
        return topic_setting(name)

    def check_deletion(self, name: str) -> None:
        """Of what a topic has not, nothing is left either."""

    def in_force(self, name: str) -> str:
        return self._cluster.config.describe_topic(self._broker_id, self.own, name).value or ""

    def check(self, own: Mapping[str, str]) -> None:
        """Settings of a topic do not depend on each other."""

    def store(self, own: Mapping[str, str]) -> None:
        self._cluster.controller.set_topic_configs(self._name, own)


class BrokerResource:
    """What was set for one broker while it ran, or for all of them (ALL_BROKERS)."""

    bad_value = ErrorCode.INVALID_REQUEST

    def __init__(self, cluster: Configured, broker_id: int) -> None:
        self._cluster = cluster
        self._broker_id = broker_id

    @property
    def _layer(self) -> dict[str, object]:
        config = self._cluster.config
        return config.dynamic_all if self._broker_id == ALL_BROKERS else config.dynamic_of(self._broker_id)

    @property
    def own(self) -> Mapping[str, str]:
        return {name: as_text(value) or "" for name, value in self._layer.items()}

    def setting(self, name: str) -> Setting:
        setting = broker_setting(name)
        if not setting.dynamic:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{name} cannot be changed while the broker runs; give it at start"
            )
        return setting

    def check_deletion(self, name: str) -> None:
        self.setting(name)

    def in_force(self, name: str) -> str:
        return as_text(self._cluster.config.get(self._broker_id, name)) or ""

    def check(self, own: Mapping[str, str]) -> None:
        before = self.own
        self._have(own)
        try:
            self._cluster.config.check_connections(self._broker_id)
        finally:
            self._have(before)

    def store(self, own: Mapping[str, str]) -> None:
        self._cluster.remember_config(self._broker_id, own)
        self._have(own)
        self._cluster.setting_changed()

    def _have(self, own: Mapping[str, str]) -> None:
        layer = self._layer  # in place: it is where everybody looks values up
        layer.clear()
        layer.update({name: parse(broker_setting(name), text) for name, text in own.items()})


class Asked(Protocol):
    """What both requests say of a resource."""

    resource_type: int
    resource_name: str


A = TypeVar("A", bound=Asked)


def one_by_one(asked: Sequence[A], alter: Callable[[A], None]) -> Iterator[tuple[A, int, str | None]]:
    """(what was asked, error code, message) of each resource of a request; one that is named twice is not changed at all."""
    times = Counter((one.resource_type, one.resource_name) for one in asked)
    for one in asked:
        try:
            if times[(one.resource_type, one.resource_name)] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            alter(one)
        except KafkaError as error:
            yield one, error.error_code, error.message
        else:
            yield one, 0, None


def resource(node: ConfiguredBroker, resource_type: int, name: str) -> Resource:
    """What a request names. A broker changes itself only, or all of them at once ("")."""
    if resource_type == TOPIC:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "There are no settings of all topics.")
        return TopicResource(node.cluster, node.broker_id, name)
    if resource_type != BROKER:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
    if not name:
        return BrokerResource(node.cluster, ALL_BROKERS)
    if name != str(node.broker_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node.broker_id}, but received {name}"
        )
    return BrokerResource(node.cluster, node.broker_id)


def change(asked: Resource, changes: Iterable[Change], strict_kip: bool, validate_only: bool = False) -> None:
    """Do all, or nothing. strict_kip: how the `semantics` switch stands (D10)."""
    try:
        own = applied(asked, changes, strict_kip)
        asked.check(own)
    except ConfigError as error:
        raise KafkaError(asked.bad_value, str(error)) from None
    if not validate_only:
        asked.store(own)


def applied(asked: Resource, changes: Iterable[Change], strict_kip: bool) -> dict[str, str]:
    """What `asked` would have of its own after all changes, each of another setting. Raises ConfigError, too."""
    own = dict(asked.own)
    named: set[str] = set()
    for one in changes:
        if one.name in named:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        named.add(one.name)
        if one.operation == Operation.DELETE:
            asked.check_deletion(one.name)
            own.pop(one.name, None)
            continue
        if one.value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {one.name}")
        setting = asked.setting(one.name)
        text = one.value
        if one.operation in (Operation.APPEND, Operation.SUBTRACT):
            held = own[one.name] if one.name in own else asked.in_force(one.name)
            text = _edited(setting, one.operation, held, text)
        elif one.operation != Operation.SET:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation {one.operation}")
        parse(setting, text, strict_kip)
        own[one.name] = text
    return own


def _edited(setting: Setting, operation: int, held: str, text: str) -> str:
    if setting.kind != "list":
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{setting.name} is no list: set it, or delete it")
    items = _items(held)
    if operation == Operation.APPEND:
        items += [item for item in dict.fromkeys(_items(text)) if item not in items]
    else:
        gone = _items(text)
        items = [item for item in items if item not in gone]
    return ",".join(items)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
