"""Changes of settings for AlterConfigs and IncrementalAlterConfigs: the settings of a topic, a broker, all brokers, or a group.

`applied` computes the settings that a resource itself has after the operations of a request; `change` also checks and stores them. Follows Kafka's
`ConfigAdminManager`. This module does not depend on wire messages. The functions raise KafkaError with these codes:

- UNKNOWN_TOPIC_OR_PARTITION (3) for an unknown topic;
- INVALID_CONFIG (40) for an invalid setting of a topic or group;
- INVALID_REQUEST (42) for an invalid setting of a broker, and for a contradictory request;
- KAFKA_STORAGE_ERROR (56) if the change cannot be persisted;
- UNKNOWN_SERVER_ERROR (-1) for appending to a setting that Kafka does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from kafkaproto.broker.config.broker_ids import broker_id_of
from kafkaproto.broker.config.broker_resource import BrokerResource as BrokerResource
from kafkaproto.broker.config.broker_resource import BrokersController, ConfiguredBrokers
from kafkaproto.broker.config.client_metrics import SubscriptionResource
from kafkaproto.broker.config.cluster_config import ALL_BROKERS as ALL_BROKERS
from kafkaproto.broker.config.definitions import Setting, text_or_list
from kafkaproto.broker.config.group_config import GroupResource, check_value
from kafkaproto.broker.config.java_text import java_split
from kafkaproto.broker.config.release import has_client_metrics
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32


class Operation(IntEnum):
    """The operations of IncrementalAlterConfigs, with their numbers on the wire (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Change:
    """One operation on one setting in a request that changes settings.

    name: the setting. operation: an `Operation`, or the unknown number that a client sent. value: the new value, or the list items to append or
    subtract; None if the client sent null, and for a deletion without a value.
    """

    name: str
    operation: int
    value: str | None


class TopicConfigs(BrokersController, Protocol):
    """Interface of the controller, which stores the settings of topics."""

    def topic_configs(self, name: str) -> Mapping[str, str] | None:
        """Return a topic's own settings, or None if the topic does not exist."""

    def check_topic_name(self, name: str) -> None:
        """Raise KafkaError if a topic name is illegal."""

    def set_topic_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace a topic's own settings by `configs`, which maps names to values as text. Raises KafkaError if they are rejected."""


class Configured(ConfiguredBrokers, Protocol):
    """Interface of a cluster, with the attributes and methods that this module uses to change settings."""

    @property
    def controller(self) -> TopicConfigs: ...


class ConfiguredBroker(Protocol):
    """Interface of the broker that handles AlterConfigs, IncrementalAlterConfigs or DescribeConfigs."""

    @property
    def broker_id(self) -> int: ...

    @property
    def cluster(self) -> Configured: ...


class Resource(Protocol):
    """Interface of a topic, broker or group whose settings change. bad_value: the error code for an invalid name or value of a setting."""

    bad_value: ErrorCode

    @property
    def current_settings(self) -> Mapping[str, str]:
        """Return the settings that are set on this topic, broker or group itself, by name, without inherited values."""

    def setting(self, name: str) -> Setting:
        """Return the definition with which a new value of the setting `name` is checked: its type, whether Kafka knows it, the allowed values.

        The definition of a setting whose type is list also contains Kafka's default value (`Setting.default_text`). Only such settings permit the
        operations APPEND and SUBTRACT, which change the default if no value is set on the topic, broker or group itself.
        """

    def check_deletion(self, name: str) -> None:
        """Raise KafkaError if the setting must not be deleted from this resource. Deleting a setting that is not set is no error."""

    def check(self, own: Mapping[str, str]) -> None:
        """Raise ConfigError or KafkaError if the settings cannot be set. own: all settings that are set on the resource itself after the change."""

    def store(self, own: Mapping[str, str]) -> None:
        """Replace the settings that are set on this resource itself by `own`, which maps names to values as text."""


class TopicResource:
    """The settings of a topic, whose changes are validated in Kafka's order.

    First the operations of the request are checked, then the topic's name, then the new settings, and finally whether the topic exists.
    """

    bad_value = ErrorCode.INVALID_CONFIG

    def __init__(self, cluster: Configured, name: str) -> None:
        configs = cluster.controller.topic_configs(name)
        self.current_settings = configs or {}
        self._exists = configs is not None
        self._name = name
        self._cluster = cluster

    def setting(self, name: str) -> Setting:
        """Return a definition of the setting `name` that accepts any text: `check` validates all settings of the topic together, as Kafka does."""
        definition = self._cluster.config.definitions.topic.get(name)
        return text_or_list(name, definition)

    def check_deletion(self, name: str) -> None:
        """Accept the deletion of any setting `name`, even of one that the topic does not have."""

    def check(self, own: Mapping[str, str]) -> None:
        """Raise KafkaError for an illegal name of the topic, then for invalid settings `own`, then if the topic does not exist."""
        if not self._name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        self._cluster.controller.check_topic_name(self._name)
        try:
            self._cluster.config.check_topic(own)
        except ConfigError as error:
            from kafkaproto.broker.config.rejections import topic_rejection

            raise KafkaError(self.bad_value, topic_rejection(self._cluster.config, own, error)) from None
        if not self._exists:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{self._name}' does not exist.")

    def store(self, own: Mapping[str, str]) -> None:
        self._cluster.controller.set_topic_configs(self._name, own)


def resource(node: ConfiguredBroker, resource_type: int, name: str) -> Resource:
    """Return the topic, broker, group or subscription to client metrics whose settings a request changes.

    node: the broker that got the request. name: for a broker, the id of `node`, or empty for all brokers. Raises KafkaError INVALID_REQUEST (42) for
    another broker and an unknown type. The name of a topic, group or subscription is checked later, by `Resource.check`.
    """
    if resource_type == TOPIC:
        return TopicResource(node.cluster, name)
    if resource_type == GROUP and node.cluster.config.definitions.group:
        return GroupResource(node.cluster, node.broker_id, name)
    if resource_type == CLIENT_METRICS and has_client_metrics(node.cluster.config.release):
        return SubscriptionResource(node.cluster, name)
    if resource_type != BROKER:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
    if not name:
        return BrokerResource(node.cluster, ALL_BROKERS, node.broker_id)
    if broker_id_of(name, "Node") != node.broker_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node.broker_id}, but received {name}"
        )
    return BrokerResource(node.cluster, node.broker_id)


def is_forwarded(node: ConfiguredBroker, resource_type: int) -> bool:
    """Return whether changes to the settings of this resource type are sent to the controller, which checks and applies them.

    Otherwise the broker that gets the request applies the changes itself. The result is always True for topics. For groups and for subscriptions to
    client metrics, it is True in releases in which they have settings. node: the broker that gets the request.
    """
    config = node.cluster.config
    return (
        resource_type == TOPIC
        or (resource_type == GROUP and bool(config.definitions.group))
        or (resource_type == CLIENT_METRICS and has_client_metrics(config.release))
    )


def change(resource: Resource, changes: Iterable[Change], strict_kip: bool, validate_only: bool = False) -> None:
    """Apply all changes to a resource, or none if one is invalid. With `validate_only` nothing is changed.

    strict_kip: whether to follow the KIPs and documentation where they differ from Kafka's code (D10).
    """
    try:
        own = applied(resource, changes, strict_kip)
        resource.check(own)
    except ConfigError as error:
        raise KafkaError(resource.bad_value, str(error)) from None
    if not validate_only:
        resource.store(own)


def applied(resource: Resource, changes: Iterable[Change], strict_kip: bool) -> dict[str, str]:
    """Return the settings, by name and as text, that would be set on a resource itself after all changes. Stores nothing.

    Raises KafkaError or ConfigError if a change is invalid. strict_kip: whether to follow the KIPs and documentation where they differ from Kafka's
    code (D10).
    """
    own = dict(resource.current_settings)
    for change in changes:
        if change.operation == Operation.DELETE:
            resource.check_deletion(change.name)
            own.pop(change.name, None)
            continue
        if change.operation not in list(Operation):
            if isinstance(resource, BrokerResource):
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}")
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # an exception of Kafka's controller
        setting = resource.setting(change.name)
        text = change.value or ""
        if change.operation in (Operation.APPEND, Operation.SUBTRACT):
            if setting.foreign:  # Kafka looks up its type and fails
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"cannot append to or subtract from {change.name}: it is not a setting of Kafka, so its type is unknown; use SET or DELETE",
                )
            _check_list(resource, setting, change.operation)
            text = _edited(change.operation, own.get(change.name, setting.default_text or ""), text)
        check_value(setting, text, strict_kip)
        own[change.name] = text
    return own


def check_changes(changes: Sequence[Change]) -> None:
    """Check that no setting is named twice, and that only deletions have the value null. Raises KafkaError INVALID_REQUEST (42).

    changes: the operations of a request on one resource, such as a topic. Kafka makes these checks before it looks at the resource.
    """
    if len({change.name for change in changes}) < len(changes):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    null_settings = [c.name for c in changes if c.value is None and c.operation != Operation.DELETE]
    if null_settings:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(null_settings)}")


def _check_list(resource: Resource, setting: Setting, operation: int) -> None:
    """Raise KafkaError INVALID_CONFIG (40) unless a setting is a list. operation: APPEND or SUBTRACT, for the error message."""
    if setting.kind != "list":
        name = Operation(operation).name
        message = f"Can't {name} to key {setting.name} because its type is not LIST."
        if isinstance(resource, BrokerResource):
            message = f"Config value {name.lower()} is not allowed for config key: {setting.name}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)


def _edited(operation: int, present_value: str, text: str) -> str:
    """Return the new text of a list setting after an APPEND or SUBTRACT (`operation`). text: the items to append or subtract.

    present_value: the text before the operation. It is the value that is set on the resource itself, or Kafka's default if no value is set. An empty
    item in `text` is appended like any other item; the later check of the new text decides whether it is allowed.
    """
    items = [item for item in java_split(present_value) if item]
    if operation == Operation.APPEND:
        items += [item for item in dict.fromkeys(java_split(text)) if item not in items]
    else:
        subtracted_items = java_split(text)
        items = [item for item in items if item not in subtracted_items]
    return ",".join(items)
