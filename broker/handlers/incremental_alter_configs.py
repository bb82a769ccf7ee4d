"""IncrementalAlterConfigs (key 44, versions 0-1): set, delete, append to or subtract from settings (KIP-339).

v1 is flexible.
Behaviour: one result per resource; a resource changes wholly or not at all. A broker changes what Kafka calls dynamic of its own;
"" is the default of all brokers. APPEND and SUBTRACT are for lists.
"""

from __future__ import annotations

from collections import Counter

from broker.dynamic_config import Change, change, resource
from broker.errors import KafkaError
from broker.registry import RequestContext, Response, register
from kafkaproto.api import ApiKey
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def _failed(context: RequestContext, request: IncrementalAlterConfigsRequest, error_code: int) -> Response:
    responses = [
        AlterConfigsResourceResponse(int(error_code), None, r.resource_type, r.resource_name) for r in request.resources
    ]
    return Response(IncrementalAlterConfigsResponse(responses=responses))


@register(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, _failed)
def incremental_alter_configs(context: RequestContext, request: IncrementalAlterConfigsRequest) -> Response:
    times = Counter((r.resource_type, r.resource_name) for r in request.resources)
    responses = []
    for asked in request.resources:
        answer = AlterConfigsResourceResponse(0, None, asked.resource_type, asked.resource_name)
        try:
            if times[(asked.resource_type, asked.resource_name)] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            _alter(context, asked, request.validate_only)
        except KafkaError as error:
            answer.error_code, answer.error_message = error.error_code, error.message
        responses.append(answer)
    return Response(IncrementalAlterConfigsResponse(responses=responses))


def _alter(context: RequestContext, asked: AlterConfigsResource, validate_only: bool) -> None:
    changed = resource(context.node, asked.resource_type, asked.resource_name)
    operations = [Change(c.name, c.config_operation, c.value) for c in asked.configs]
    change(changed, operations, context.node.cluster.strict_kip, validate_only)
