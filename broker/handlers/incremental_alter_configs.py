"""IncrementalAlterConfigs (key 44, versions 0-1): set, delete, append to or subtract from settings (KIP-339).

v1 is flexible.
Behaviour: one result per resource; a resource changes wholly or not at all. Broker settings change only where Kafka calls them
dynamic; "" is the default of all brokers. APPEND and SUBTRACT are for lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from broker.config import ConfigError, as_text, broker_setting, parse, topic_setting
from broker.errors import KafkaError
from broker.registry import RequestContext, Response, register
from broker.settings import Setting
from kafkaproto.api import ApiKey
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def _failed(context: RequestContext, request: IncrementalAlterConfigsRequest, error_code: int) -> Response:
    responses = [
        AlterConfigsResourceResponse(int(error_code), None, r.resource_type, r.resource_name) for r in request.resources
    ]
    return Response(IncrementalAlterConfigsResponse(responses=responses))


@register(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, _failed)
def incremental_alter_configs(context: RequestContext, request: IncrementalAlterConfigsRequest) -> Response:
    times = Counter((r.resource_type, r.resource_name) for r in request.resources)
    responses = []
    for resource in request.resources:
        answer = AlterConfigsResourceResponse(0, None, resource.resource_type, resource.resource_name)
        try:
            if times[(resource.resource_type, resource.resource_name)] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            _alter_or_refuse(context, resource, request.validate_only)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.error_code, error.message
        responses.append(answer)
    return Response(IncrementalAlterConfigsResponse(responses=responses))


def _alter_or_refuse(context: RequestContext, resource: AlterConfigsResource, validate_only: bool) -> None:
    try:
        _alter(context, resource, validate_only)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _alter(context: RequestContext, resource: AlterConfigsResource, validate_only: bool) -> None:
    if len({c.name for c in resource.configs}) != len(resource.configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if resource.resource_type == TOPIC:
        _alter_topic(context, resource, validate_only)
    elif resource.resource_type == BROKER:
        _alter_broker(context, resource, validate_only)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type {resource.resource_type}.")


def _alter_topic(context: RequestContext, resource: AlterConfigsResource, validate_only: bool) -> None:
    node, name = context.node, resource.resource_name
    topic = node.image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    holds = node.config.cluster.describe_topic
    changed = _apply(
        resource.configs,
        topic.configs,
        topic_setting,
        lambda key: holds(node.broker_id, topic.configs, key).value or "",
    )
    if not validate_only:
        node.cluster.controller.set_topic_configs(name, changed)


def _alter_broker(context: RequestContext, resource: AlterConfigsResource, validate_only: bool) -> None:
    cluster, name = context.node.cluster, resource.resource_name
    if name and name not in map(str, range(len(cluster.nodes))):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no broker {name!r}.")
    config = cluster.config
    layer = config.dynamic_broker.setdefault(int(name), {}) if name else config.dynamic_all
    broker_id = int(name) if name else -1
    texts = {key: as_text(value) or "" for key, value in layer.items()}
    changed = _apply(resource.configs, texts, _dynamic, lambda key: as_text(config.get(broker_id, key)) or "")
    before = dict(layer)
    _replace(layer, {key: parse(broker_setting(key), text) for key, text in changed.items()})
    try:
        config.check_connections(broker_id)
        if not validate_only:
            cluster.remember_config(broker_id, changed)
    except (ConfigError, KafkaError):
        _replace(layer, before)
        raise
    if validate_only:
        _replace(layer, before)
    else:
        cluster.setting_changed()


def _replace(layer: dict[str, Any], values: Mapping[str, Any]) -> None:
    """In place: the layer is the one that everybody looks values up in."""
    layer.clear()
    layer.update(values)


def _dynamic(name: str) -> Setting:
    setting = broker_setting(name)
    if not setting.dynamic:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} cannot be changed while the broker runs; give it at start")
    return setting


def _apply(
    operations: list[AlterableConfig],
    current: Mapping[str, str],
    setting_of: Callable[[str], Setting],
    value_that_holds: Callable[[str], str],
) -> dict[str, str]:
    """The own values of a resource after all operations. Raises KafkaError 42, 40 and ConfigError; then nothing has changed."""
    changed = dict(current)
    for operation in operations:
        setting = setting_of(operation.name)
        if operation.config_operation == DELETE:
            changed.pop(operation.name, None)
            continue
        if operation.value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for {operation.name}")
        text = operation.value
        if operation.config_operation in (APPEND, SUBTRACT):
            held = changed.get(operation.name, value_that_holds(operation.name))
            text = _edited(setting, operation.config_operation, held, text)
        elif operation.config_operation != SET:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation {operation.config_operation}")
        parse(setting, text)
        changed[operation.name] = text
    return changed


def _edited(setting: Setting, operation: int, held: str, text: str) -> str:
    if setting.kind != "list":
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{setting.name} is no list: set it, or delete it")
    items = [item for item in held.split(",") if item]
    named = [item for item in text.split(",") if item]
    if operation == APPEND:
        items += [item for item in named if item not in items]
    else:
        items = [item for item in items if item not in named]
    return ",".join(items)
