"""IncrementalAlterConfigs (key 44, versions 0-1): set, delete, append to or subtract from settings (KIP-339).

v1 is flexible.
Behaviour: each resource has one result, and either all its changes are made or none. A broker changes only its own dynamic settings; the empty broker
name stands for the dynamic settings of all brokers. APPEND and SUBTRACT apply to lists. The broker sends the changes that pass its own checks to the
controller as one request. So one unknown operation on a topic, a group or a subscription makes all changes in this request fail (AD-38). The
controller takes the settings of a resource in the order of a Java hash table. The resource type 8 stands for the loggers of the broker (AD-42).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.config.dynamic import (
    Change,
    Operation,
    applied,
    change,
    check_changes,
    is_forwarded,
    resource,
)
from kafkaproto.broker.config.named_resources import one_by_one
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import hash_order
from kafkaproto.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

BROKER_LOGGER = 8
OPERATIONS = frozenset(Operation)


def _failed(exchange: Exchange, request: IncrementalAlterConfigsRequest, error_code: int) -> Reply:
    responses = [
        AlterConfigsResourceResponse(int(error_code), None, r.resource_type, r.resource_name) for r in request.resources
    ]
    return Reply(IncrementalAlterConfigsResponse(responses=responses))


@register(ApiKey.INCREMENTAL_ALTER_CONFIGS, _failed)
def incremental_alter_configs(exchange: Exchange, request: IncrementalAlterConfigsRequest) -> Reply:
    checked = one_by_one(request.resources, lambda r: check_changes(_operations(r)))
    fails = any(_makes_controller_fail(exchange, altered) for altered, code, _ in checked if not code)
    responses = [
        AlterConfigsResourceResponse(code, message, altered.resource_type, altered.resource_name)
        for altered, code, message in one_by_one(
            request.resources, lambda r: _alter(exchange, r, request.validate_only, fails=fails)
        )
    ]
    return Reply(IncrementalAlterConfigsResponse(responses=responses))


def _operations(altered: AlterConfigsResource) -> list[Change]:
    return [Change(c.name, c.config_operation, c.value) for c in altered.configs]


def _in_java_order(operations: list[Change]) -> list[Change]:
    """Return operations in the order in which the controller checks them: that of a Java hash table whose keys are the names of the settings."""
    by_name = {operation.name: operation for operation in operations}
    return [by_name[name] for name in hash_order(by_name)]


def _makes_controller_fail(exchange: Exchange, altered: AlterConfigsResource) -> bool:
    """Return whether the changes of one resource are sent to the controller, and the first invalid operation is an unknown one.

    The controller then rejects all changes of the request that are sent to it (AD-38).
    """
    node, operations = exchange.node, _in_java_order(_operations(altered))
    if not is_forwarded(node, altered.resource_type) or all(o.operation in OPERATIONS for o in operations):
        return False
    config_resource = resource(node, altered.resource_type, altered.resource_name)
    try:
        applied(config_resource, operations, node.cluster.strict_kip)
    except KafkaError as error:
        return error.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    return False


def _alter(exchange: Exchange, altered: AlterConfigsResource, validate_only: bool, *, fails: bool) -> None:
    """Change the settings of one resource, or raise KafkaError. altered: the resource and its changes.

    validate_only: whether to check the changes without applying them. fails: whether `_makes_controller_fail` is true for a resource of the request.
    The controller then rejects all changes that reach it: nothing is changed and UNKNOWN_SERVER_ERROR (-1) is raised. Log levels are changed
    nevertheless, because the broker itself handles them.
    """
    operations = _operations(altered)
    check_changes(operations)
    if altered.resource_type == BROKER_LOGGER:
        from kafkaproto.broker.config.loggers import change_levels

        node = exchange.node
        change_levels(node.broker_id, altered.resource_name, operations, validate_only, node.cluster.release_name)
        return
    is_of_controller = is_forwarded(exchange.node, altered.resource_type)
    if not fails or not is_of_controller:
        if is_of_controller:
            operations = _in_java_order(operations)
        config_resource = resource(exchange.node, altered.resource_type, altered.resource_name)
        change(config_resource, operations, exchange.node.cluster.strict_kip, validate_only or fails)
    if fails:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
