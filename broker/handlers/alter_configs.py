"""AlterConfigs (key 33, versions 0-2): replace all settings that a topic, broker or group overrides.

v2 is flexible.
Behaviour: each resource has one result, and its settings are replaced completely or not at all. A setting that the request does not contain is no
longer overridden. IncrementalAlterConfigs changes single settings instead (KIP-339).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.config.dynamic import Change, Operation, change, check_changes, resource
from kafkaproto.broker.config.named_resources import one_by_one
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def _failed(exchange: Exchange, request: AlterConfigsRequest, error_code: int) -> Reply:
    responses = [
        AlterConfigsResourceResponse(int(error_code), None, r.resource_type, r.resource_name) for r in request.resources
    ]
    return Reply(AlterConfigsResponse(responses=responses))


@register(ApiKey.ALTER_CONFIGS, _failed)
def alter_configs(exchange: Exchange, request: AlterConfigsRequest) -> Reply:
    responses = [
        AlterConfigsResourceResponse(code, message, altered.resource_type, altered.resource_name)
        for altered, code, message in one_by_one(
            request.resources, lambda r: _replace(exchange, r, request.validate_only)
        )
    ]
    return Reply(AlterConfigsResponse(responses=responses))


def _replace(exchange: Exchange, altered: AlterConfigsResource, validate_only: bool) -> None:
    operations = [Change(c.name, Operation.SET, c.value) for c in altered.configs]
    check_changes(operations)
    config_resource = resource(exchange.node, altered.resource_type, altered.resource_name)
    altered_names = {c.name for c in altered.configs}
    operations += [
        Change(name, Operation.DELETE, None) for name in config_resource.current_settings if name not in altered_names
    ]
    change(config_resource, operations, exchange.node.cluster.strict_kip, validate_only)
