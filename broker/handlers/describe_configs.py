"""DescribeConfigs (key 32, versions 0-4): the settings of topics, brokers and groups, and the source of each value.

v1 adds synonyms and sources; v3 adds types and documentation; v4 is flexible.
Behaviour: resource type 2 is a topic, 4 a broker ("" stands for the dynamic default of all brokers), 8 the loggers of a broker, 16 a subscription to
client metrics, 32 a group (Kafka 4.0 and later). A broker describes only itself. Another type fails all resources of the request with error
INVALID_REQUEST (42). Settings that Kafka does not have (with the prefix `kafkaproto.`) are left out. The listeners and the log directory of a broker
that was started without them are described like values given at start (CF-25).
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkaproto.api import ApiKey
from kafkaproto.broker.config.broker_ids import broker_id_of
from kafkaproto.broker.config.client_metrics import SubscriptionSetting, subscription_settings
from kafkaproto.broker.config.cluster_config import Source
from kafkaproto.broker.config.description import (
    Described,
    Synonym,
    broker_descriptions,
    cluster_descriptions,
    group_descriptions,
    topic_descriptions,
)
from kafkaproto.broker.config.listeners import address_text
from kafkaproto.broker.config.release import has_client_metrics, marks_defaults
from kafkaproto.broker.errors import MALFORMED, KafkaError
from kafkaproto.broker.metadata.planning import check_name
from kafkaproto.broker.node import Node
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

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
UNKNOWN_TYPE = 0
_LISTENERS = ("listeners", "advertised.listeners")
_LOG_DIRECTORIES = ("log.dirs", "log.dir")
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


@register(ApiKey.DESCRIBE_CONFIGS, _failed)
def describe_configs(exchange: Exchange, request: DescribeConfigsRequest) -> Reply:
    if not all(_is_described(exchange, r.resource_type) for r in request.resources):
        results = [
            DescribeConfigsResult(int(ErrorCode.INVALID_REQUEST), MALFORMED, r.resource_type, r.resource_name)
            for r in request.resources
        ]
        return Reply(DescribeConfigsResponse(results=results))
    return Reply(DescribeConfigsResponse(results=[_resource(exchange, request, r) for r in request.resources]))


def _is_described(exchange: Exchange, resource_type: int) -> bool:
    """Return whether DescribeConfigs supports a type of resources in the emulated Kafka release."""
    if resource_type == GROUP:
        return bool(exchange.node.config.cluster.definitions.group)
    if resource_type == CLIENT_METRICS:
        return has_client_metrics(exchange.node.cluster.release_name)
    return resource_type in (TOPIC, BROKER, BROKER_LOGGER)


def _resource(
    exchange: Exchange, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(0, "", resource.resource_type, resource.resource_name)
    try:
        if resource.resource_type == TOPIC:
            descriptions = _topic(exchange, resource.resource_name)
        elif resource.resource_type == BROKER:
            descriptions = _broker(exchange, resource.resource_name)
        elif resource.resource_type == BROKER_LOGGER:
            descriptions = _loggers(exchange, resource.resource_name)
        elif resource.resource_type == GROUP:
            descriptions = _group(exchange, resource.resource_name)
        else:
            descriptions = _subscription(exchange, resource.resource_name)
    except KafkaError as error:
        result.error_code, result.error_message = error.error_code, error.message
        return result
    names = resource.configuration_keys
    if resource.resource_type == CLIENT_METRICS and not exchange.node.is_release_4:
        names = None  # Kafka 3.9 does not look at them
    marks_default = exchange.api_version == 0 and marks_defaults(exchange.node.cluster.release_name)
    result.configs = [
        _config(d, resource.resource_type, request.include_synonyms, marks_default)
        for d in descriptions
        if not names or d.name in names
    ]
    return result


def _topic(exchange: Exchange, name: str) -> Iterable[Described]:
    check_name(name)
    topic = exchange.node.image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")  # Kafka sends no text here
    return topic_descriptions(exchange.node.config.cluster, exchange.node.broker_id, topic.configs)


def _broker(exchange: Exchange, name: str) -> Iterable[Described]:
    config, own_id = exchange.node.config.cluster, exchange.node.broker_id
    if name == "":
        return cluster_descriptions(config)
    if broker_id_of(name, "Broker") != own_id:
        text = f"Unexpected broker id, expected {own_id} or empty string, but received {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    return broker_descriptions(config, own_id, _in_use(exchange.node))


def _in_use(node: Node) -> dict[str, str]:
    """Map the settings for listeners and the log directory to the values that a broker uses. Settings given at start are left out (CF-25).

    A Kafka broker is always started with these settings, so DescribeConfigs reports these values as if they had been given at start.
    """
    static_texts = node.config.cluster.static_texts(node.broker_id)
    texts: dict[str, str] = {}
    if static_texts.keys().isdisjoint(_LISTENERS):
        endpoints = [
            f"{name}://{address_text(host, port)}"
            for name, (host, port) in node.image.brokers[node.broker_id].listeners.items()
        ]
        texts |= dict.fromkeys(_LISTENERS, ",".join(endpoints))
    if static_texts.keys().isdisjoint(_LOG_DIRECTORIES):
        texts[_LOG_DIRECTORIES[0]] = node.log_dir
    return texts


def _loggers(exchange: Exchange, name: str) -> Iterable[Described]:
    from kafkaproto.broker.config.loggers import check_broker_id, levels

    own_id = exchange.node.broker_id
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    check_broker_id(name, own_id, "Broker", f"Unexpected broker id, expected {own_id} but received {{}}")
    return [Described(logger, level, Source.BROKER_LOGGER, (), None, False, False) for logger, level in levels()]


def _group(exchange: Exchange, name: str) -> Iterable[Described]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return group_descriptions(exchange.node.config.cluster, exchange.node.broker_id, name)


def _subscription(exchange: Exchange, name: str) -> Iterable[Described]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    return [_described(setting) for setting in subscription_settings(exchange.node.config.cluster, name)]


def _described(setting: SubscriptionSetting) -> Described:
    """Return one setting of a client metrics subscription in the form in which DescribeConfigs describes every setting.

    The list of synonyms contains only the value that the subscription sets. The list is empty if the subscription does not set the value, or if
    Kafka does not know the setting (`setting.kind` is None).
    """
    source = Source.CLIENT_METRICS if setting.is_set else Source.DEFAULT
    synonyms = (Synonym(setting.name, setting.value, source),) if setting.is_set and setting.kind else ()
    return Described(setting.name, setting.value, source, synonyms, setting.kind, False, False)


def _config(
    described: Described, resource_type: int, with_synonyms: bool, marks_default: bool
) -> DescribeConfigsResourceResult:
    has_empty_text = described.kind is None and resource_type != BROKER  # Kafka for loggers, and 3.9 for client metrics
    result = DescribeConfigsResourceResult(
        described.name,
        described.value,
        read_only=described.read_only,
        is_default=marks_default and described.source == Source.DEFAULT,
        config_source=int(described.source),
        is_sensitive=described.sensitive,
        config_type=UNKNOWN_TYPE if described.kind is None else TYPE_NUMBERS[described.kind],
        documentation="" if has_empty_text else None,
    )
    if with_synonyms:
        result.synonyms = [DescribeConfigsSynonym(s.name, s.value, int(s.source)) for s in described.synonyms]
    return result
