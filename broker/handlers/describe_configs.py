"""DescribeConfigs (key 32, versions 0-4): the settings of topics and brokers, and where each value comes from.

v1 synonyms and sources; v3 types and documentation; v4 flexible.
Behaviour: resource type 2 is a topic, 4 a broker ("" is the default of all brokers: what was changed for all while running).
A broker tells about itself only. Loggers (8) and other types are refused with 42.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkaproto.api import ApiKey
from kafkaproto.broker.config.definitions import BROKER_SETTINGS, TOPIC_SETTINGS
from kafkaproto.broker.config.values import Described, Source
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.planning import topic_name_is_legal
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

TOPIC, BROKER = 2, 4
TYPE_NUMBERS = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}


def _failed(exchange: Exchange, request: DescribeConfigsRequest, error_code: int) -> Reply:
    results = [
        DescribeConfigsResult(int(error_code), None, r.resource_type, r.resource_name) for r in request.resources
    ]
    return Reply(DescribeConfigsResponse(results=results))


@register(ApiKey.DESCRIBE_CONFIGS, 0, 4, _failed)
def describe_configs(exchange: Exchange, request: DescribeConfigsRequest) -> Reply:
    return Reply(DescribeConfigsResponse(results=[_resource(exchange, request, r) for r in request.resources]))


def _resource(
    exchange: Exchange, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(0, "", resource.resource_type, resource.resource_name)
    try:
        if resource.resource_type == TOPIC:
            described = _topic(exchange, resource.resource_name)
        elif resource.resource_type == BROKER:
            described = _broker(exchange, resource.resource_name)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type {resource.resource_type}.")
    except KafkaError as error:
        result.error_code, result.error_message = error.error_code, error.message
        return result
    wanted = resource.configuration_keys
    result.configs = [
        _config(d, request.include_synonyms, resource.resource_type, exchange.api_version)
        for d in described
        if not wanted or d.name in wanted
    ]
    return result


def _topic(exchange: Exchange, name: str) -> Iterable[Described]:
    if not topic_name_is_legal(name):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name {name!r} is illegal.")
    topic = exchange.node.image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    config = exchange.node.config.cluster
    return [config.describe_topic(exchange.node.broker_id, topic.configs, key) for key in TOPIC_SETTINGS]


def _broker(exchange: Exchange, name: str) -> Iterable[Described]:
    config, own_id = exchange.node.config.cluster, exchange.node.broker_id
    if name == "":
        return [
            d for d in (config.describe_broker(-1, key) for key in config.dynamic_all) if d.source != Source.DEFAULT
        ]
    if name != str(own_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"A broker describes itself only: expected {own_id}, but received {name}"
        )
    shown = [key for key in BROKER_SETTINGS if config.is_shown(own_id, key)]
    return [config.describe_broker(own_id, key) for key in (*shown, *config.given_to_listeners(own_id))]


def _config(
    described: Described, with_synonyms: bool, resource_type: int, version: int
) -> DescribeConfigsResourceResult:
    setting = described.setting
    result = DescribeConfigsResourceResult(
        described.name,
        described.value,
        # Kafka keeps replication quotas apart from what it calls dynamic, and says so here.
        read_only=resource_type == BROKER and (setting.only_dynamic or not setting.dynamic),
        is_default=version == 0 and described.source == Source.DEFAULT,  # later versions say where a value comes from
        config_source=int(described.source),
        config_type=TYPE_NUMBERS[setting.kind],
        documentation=None,
    )
    if with_synonyms:
        result.synonyms = [DescribeConfigsSynonym(name, value, int(source)) for name, value, source in described.layers]
    return result
