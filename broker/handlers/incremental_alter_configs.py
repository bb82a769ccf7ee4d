"""IncrementalAlterConfigs (key 44, versions 0-1): set, delete, append to or subtract from settings (KIP-339).

v1 is flexible.
Behaviour: each resource has one result, and either all its changes are made or none. A broker changes only its own dynamic settings; the empty broker
name stands for the dynamic settings of all brokers. APPEND and SUBTRACT apply to lists. The
resource type 8 stands for the loggers of the broker (AD-39).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.config.dynamic import Change, change, check_changes, one_by_one, resource
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

BROKER_LOGGER = 8


def _failed(exchange: Exchange, request: IncrementalAlterConfigsRequest, error_code: int) -> Reply:
    responses = [
        AlterConfigsResourceResponse(int(error_code), None, r.resource_type, r.resource_name) for r in request.resources
    ]
    return Reply(IncrementalAlterConfigsResponse(responses=responses))


@register(ApiKey.INCREMENTAL_ALTER_CONFIGS, _failed)
def incremental_alter_configs(exchange: Exchange, request: IncrementalAlterConfigsRequest) -> Reply:
    responses = [
        AlterConfigsResourceResponse(code, message, altered.resource_type, altered.resource_name)
        for altered, code, message in one_by_one(
            request.resources, lambda r: _alter(exchange, r, request.validate_only)
        )
    ]
    return Reply(IncrementalAlterConfigsResponse(responses=responses))


def _alter(exchange: Exchange, altered: AlterConfigsResource, validate_only: bool) -> None:
    operations = [Change(c.name, c.config_operation, c.value) for c in altered.configs]
    check_changes(operations)
    if altered.resource_type == BROKER_LOGGER:
        from kafkaproto.broker.config.loggers import change_levels

        change_levels(exchange.node.broker_id, altered.resource_name, operations, validate_only)
        return
    changed = resource(exchange.node, altered.resource_type, altered.resource_name)
    change(changed, operations, exchange.node.cluster.strict_kip, validate_only)
