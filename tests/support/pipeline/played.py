"""Traffic with known counts, played in virtual time, and the rows that a report finds in it."""

from __future__ import annotations

from typing import Any

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.pipeline.trace.answers.answer import Answer, evaluate_query
from kafkaproto.pipeline.trace.audit.rule import Tables
from kafkaproto.trace.format import Entry
from tests.support.recording import recorder_into
from tests.support.wire import batch, fetch, limit, metadata, produce

RACKS = ("a", "b", "c")
QUOTA = 10_000
SPARK = "consumer-spark-kafka-source-0059f3c4-3cc8-43e4-9c79-7ec93d93c1e2--757908602-executor-1"
Row = dict[str, Any]


def windows(broker_id: int) -> dict[str, str]:
    """Return quota window settings that differ between brokers."""
    return {"quota.window.num": str(3 + broker_id), "quota.window.size.seconds": "1"}


def racked(*where: tuple[str, int, int], rack: str = "", **more: Any) -> Any:
    request = fetch(*where, **more)
    request.rack_id = rack
    return request


def play(run: str) -> list[Entry]:
    """Play the traffic of a run. Run "after" has a newer client that asks twice and requests something unknown."""
    entries: list[Entry] = []
    config = {f"{i}.broker.rack": rack for i, rack in enumerate(RACKS)}
    config |= {f"{i}.{name}": value for i in range(len(RACKS)) for name, value in windows(i).items()}
    cluster = VirtualCluster(3, config)
    cluster.state.record(recorder_into(entries))
    cluster.topic("t", 1, 3)
    cluster.topic("unread", 1)
    leader = cluster.state.controller.image.topics["t"].partitions[0].leader

    def connected(client_id: str, broker_id: int = leader) -> MemoryClient:
        client = cluster.connect(broker_id, client_id=client_id)
        client.ask(ApiVersionsRequest("librdkafka", "2.5"), 3)
        return client

    limit(cluster, "p", producer_byte_rate=QUOTA)
    producer = connected("p")
    for _ in range(8):
        response = producer.ask(produce("t", batch(*[b"x" * 500] * 10)), 9)
        cluster.advance(response.throttle_time_ms + 100)
    other = connected("p-2", cluster.state.controller.image.topics["unread"].partitions[0].leader)
    other.ask(produce("unread", batch(b"1", b"2", b"3")), 9)
    reader = connected("reader-1")
    for offset in (0, 40):
        reader.ask(racked(("t", 0, offset), rack="b", max_bytes=21_000), 11)
    spark = connected(SPARK)
    for _ in range(6):
        spark.ask(ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, -1)])]), 5)
    spark.ask(racked(("t", 0, 0), rack="${env:RACK}"), 11)
    spark.ask(racked(("t", 0, 0), rack="${env:RACK}"), 11)
    if run == "after":
        for _ in range(60):
            reader.ask(metadata(["t"]), 9)
        reader.ask(fetch(("t", 0, 1_000_000)), 11)
        reader.ask(racked(("t", 0, 0), rack="b"), 11)
    cluster.run()
    return entries


def answer_rows(answer: Answer, query: str, tables: Tables) -> list[Row]:
    [query_result] = [listed_query for listed_query in answer.queries if listed_query.name == query]
    return evaluate_query(query_result, tables).rows
