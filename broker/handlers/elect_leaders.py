"""ElectLeaders (key 43, versions 0-2).

v1 unclean elections (KIP-460) and a top-level error; v2 flexible.
Behaviour: without a list every partition that needs an election gets one, and only those are told of. With a list each partition
is answered for: 84 where the election is not needed, 80 where the preferred replica cannot lead, 83 where nobody can; 42 for
all where the kind of election is unknown.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

PREFERRED, UNCLEAN = 0, 1


def _failed(exchange: Exchange, request: ElectLeadersRequest, error_code: int) -> Reply:
    return Reply(ElectLeadersResponse(error_code=int(error_code) if exchange.api_version else 0))


@register(ApiKey.ELECT_LEADERS, 0, 2, _failed)
def elect_leaders(exchange: Exchange, request: ElectLeadersRequest) -> Reply:
    if request.election_type not in (PREFERRED, UNCLEAN):
        return _of_no_kind(request)
    controller = exchange.node.cluster.controller
    listed = request.topic_partitions is not None
    asked = request.topic_partitions if request.topic_partitions is not None else _everything(controller)
    response = ElectLeadersResponse()
    for topic in asked:
        results = [_elect(controller, topic.topic, index, request.election_type) for index in topic.partitions]
        told = [r for r in results if listed or r.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        if told:
            response.replica_election_results.append(ReplicaElectionResult(topic.topic, told))
    return Reply(response)


def _of_no_kind(request: ElectLeadersRequest) -> Reply:
    code, message = int(ErrorCode.INVALID_REQUEST), f"Unknown election type {request.election_type}"
    results = [
        ReplicaElectionResult(t.topic, [PartitionResult(index, code, message) for index in t.partitions])
        for t in request.topic_partitions or ()
    ]
    return Reply(ElectLeadersResponse(error_code=code, replica_election_results=results))


def _everything(controller: Controller) -> list[TopicPartitions]:
    return [TopicPartitions(t.name, [p.index for p in t.partitions]) for t in controller.image.topics.values()]


def _elect(controller: Controller, topic: str, index: int, election_type: int) -> PartitionResult:
    try:
        if election_type == PREFERRED:
            controller.elect_preferred(topic, index)
        else:
            controller.elect_unclean(topic, index)
    except KafkaError as error:
        return PartitionResult(index, error.error_code, error.message)
    return PartitionResult(index, 0, None)
