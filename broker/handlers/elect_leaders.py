"""ElectLeaders (key 43, versions 0-2): elect the preferred replica as leader, or any running replica (KIP-460).

v1 adds unclean elections and a top-level error; v2 is flexible.
Behaviour: if the list of partitions is null, the broker runs the elections that are needed. The response then names every topic of the cluster, but
only the partitions that needed an election; for most topics it names none. If the list is not null, the response has each listed partition with an
error code. The code is 0 after an election, and ELECTION_NOT_NEEDED (84) if the preferred replica already led or, for an unclean election, if there
was a leader. PREFERRED_LEADER_NOT_AVAILABLE (80) means that the preferred replica cannot lead, ELIGIBLE_LEADERS_NOT_AVAILABLE (83) that no replica
can lead, UNKNOWN_TOPIC_OR_PARTITION (3) that the partition is unknown. All listed partitions get error REQUEST_TIMED_OUT (7) for a timeout of 0 or
less (AD-43), and INVALID_REQUEST (42) for an unknown kind of election. An empty list gets an empty response (AD-47).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.requests.deadline import check_timeout
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
    return _rejected(exchange, request, error_code, None)


@register(ApiKey.ELECT_LEADERS, _failed)
def elect_leaders(exchange: Exchange, request: ElectLeadersRequest) -> Reply:
    if request.topic_partitions == []:
        return Reply(ElectLeadersResponse())
    check_timeout(request.timeout_ms)
    if request.election_type not in (PREFERRED, UNCLEAN):
        message = f"Unknown election type {request.election_type}"
        return _rejected(exchange, request, ErrorCode.INVALID_REQUEST, message)
    controller = exchange.node.cluster.controller
    names_partitions = request.topic_partitions is not None
    requested_topics = request.topic_partitions if request.topic_partitions is not None else _everything(controller)
    response = ElectLeadersResponse()
    for topic in requested_topics:
        results = [_elect(controller, topic.topic, index, request.election_type) for index in topic.partitions]
        reported = [r for r in results if names_partitions or r.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        response.replica_election_results.append(ReplicaElectionResult(topic.topic, reported))
    return Reply(response)


def _rejected(exchange: Exchange, request: ElectLeadersRequest, error_code: int, message: str | None) -> Reply:
    results = [
        ReplicaElectionResult(t.topic, [PartitionResult(index, int(error_code), message) for index in t.partitions])
        for t in request.topic_partitions or ()
    ]
    code = int(error_code) if exchange.api_version else 0
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
