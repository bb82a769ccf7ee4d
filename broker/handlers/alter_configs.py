"""AlterConfigs (key 33, versions 0-2): replace all own settings of a topic or of a broker.

v2 is flexible.
Behaviour: as IncrementalAlterConfigs (KIP-339), which came because this one takes away what it does not name.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.config.dynamic import Change, Operation, change, one_by_one, resource
from kafkaproto.broker.requests.registry import RequestContext, Response, register
from kafkaproto.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def _failed(context: RequestContext, request: AlterConfigsRequest, error_code: int) -> Response:
    responses = [
        AlterConfigsResourceResponse(int(error_code), None, r.resource_type, r.resource_name) for r in request.resources
    ]
    return Response(AlterConfigsResponse(responses=responses))


@register(ApiKey.ALTER_CONFIGS, 0, 2, _failed)
def alter_configs(context: RequestContext, request: AlterConfigsRequest) -> Response:
    responses = [
        AlterConfigsResourceResponse(code, message, asked.resource_type, asked.resource_name)
        for asked, code, message in one_by_one(request.resources, lambda r: _replace(context, r, request.validate_only))
    ]
    return Response(AlterConfigsResponse(responses=responses))


def _replace(context: RequestContext, asked: AlterConfigsResource, validate_only: bool) -> None:
    changed = resource(context.node, asked.resource_type, asked.resource_name)
    operations = [Change(c.name, Operation.SET, c.value) for c in asked.configs]
    named = {c.name for c in asked.configs}
    operations += [Change(name, Operation.DELETE, None) for name in changed.own if name not in named]
    change(changed, operations, context.node.cluster.strict_kip, validate_only)
