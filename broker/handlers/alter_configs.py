"""AlterConfigs (key 33, versions 0-2): replace all own settings of a topic or of a broker.

v2 is flexible.
Behaviour: as IncrementalAlterConfigs (KIP-339), which came because this one takes away what it does not name.
"""

from __future__ import annotations

from collections import Counter

from broker.dynamic_config import Change, Operation, change, resource
from broker.errors import KafkaError
from broker.registry import RequestContext, Response, register
from kafkaproto.api import ApiKey
from kafkaproto.error_codes import ErrorCode
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
    times = Counter((r.resource_type, r.resource_name) for r in request.resources)
    responses = []
    for asked in request.resources:
        answer = AlterConfigsResourceResponse(0, None, asked.resource_type, asked.resource_name)
        try:
            if times[(asked.resource_type, asked.resource_name)] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            _replace(context, asked, request.validate_only)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.error_code, error.message
        responses.append(answer)
    return Response(AlterConfigsResponse(responses=responses))


def _replace(context: RequestContext, asked: AlterConfigsResource, validate_only: bool) -> None:
    changed = resource(context.node, asked.resource_type, asked.resource_name)
    operations = [Change(c.name, Operation.SET, c.value) for c in asked.configs]
    named = {c.name for c in asked.configs}
    operations += [Change(name, Operation.DELETE, None) for name in changed.own if name not in named]
    change(changed, operations, context.node.cluster.strict_kip, validate_only)
