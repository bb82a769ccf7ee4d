"""The tasks with aiokafka; see `tasks.py`."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.support.by_release.programs.tasks import (
    BROKERS,
    GIVEN,
    OFFSET_IN_TRANSACTION,
    PATIENCE_SECONDS,
    RESUME_AT,
    VALUES,
    WORKS,
    Missing,
    Waits,
    arguments,
    check,
    report,
    text_of,
)

BOOTSTRAP, NAME = arguments()
PARTITION = TopicPartition(GIVEN, 0)
COMMON: dict[str, Any] = {"bootstrap_servers": BOOTSTRAP, "client_id": NAME}


async def started(client: Any) -> Any:
    await client.start()
    return client


async def consumer(**settings: Any) -> Any:
    return await started(AIOKafkaConsumer(**COMMON, auto_offset_reset="earliest", enable_auto_commit=False, **settings))


async def read(reader: Any, count: int) -> list[str]:
    return [(await reader.getone()).value.decode() for _ in range(count)]


async def connect() -> None:
    writer = await started(AIOKafkaProducer(**COMMON))
    assert await writer.partitions_for(GIVEN) == {0}


async def produce() -> None:
    writer = await started(AIOKafkaProducer(**COMMON, acks="all"))
    await writer.send_and_wait(f"{NAME}-produce", b"value", partition=0)


async def idempotent_produce() -> None:
    writer = await started(AIOKafkaProducer(**COMMON, enable_idempotence=True))
    await writer.send_and_wait(f"{NAME}-idempotent", b"value", partition=0)


async def consume() -> None:
    reader = await consumer()
    reader.assign([PARTITION])
    reader.seek(PARTITION, 0)
    check(await read(reader, len(VALUES)), VALUES)


async def group() -> None:
    for expected in (VALUES, VALUES[RESUME_AT:]):
        reader = await consumer(group_id=f"{NAME}-classic")
        reader.subscribe([GIVEN])
        check(await read(reader, len(expected)), expected)
        if expected is VALUES:
            await reader.commit({PARTITION: RESUME_AT})
        await reader.stop()


async def new_group() -> None:
    if "group_protocol" not in inspect.signature(AIOKafkaConsumer).parameters:
        raise Missing
    raise NotImplementedError("aiokafka has a new group protocol now: let this task use it")


async def describe_cluster() -> None:
    admin = await started(AIOKafkaAdminClient(**COMMON))
    assert len((await admin.describe_cluster())["brokers"]) == BROKERS


async def create_topic() -> None:
    admin = await started(AIOKafkaAdminClient(**COMMON))
    response = await admin.create_topics([NewTopic(f"{NAME}-created", 2, 1)])
    [(_, code, *_)] = response.topic_errors
    assert code == 0, f"error {code}"


async def add_partitions() -> None:
    admin = await started(AIOKafkaAdminClient(**COMMON))
    await admin.create_partitions({f"{NAME}-partitions": NewPartitions(2)})


async def describe_configs() -> None:
    admin = await started(AIOKafkaAdminClient(**COMMON))
    [response] = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, GIVEN)])
    [resource] = response.resources
    assert "retention.ms" in [entry[0] for entry in resource[4]]


async def list_topics() -> None:
    admin = await started(AIOKafkaAdminClient(**COMMON))
    assert GIVEN in await admin.list_topics()


async def transaction(topic: str, *, with_offsets: bool) -> None:
    writer = await started(AIOKafkaProducer(**COMMON, transactional_id=topic))
    async with writer.transaction():
        await writer.send_and_wait(topic, b"value", partition=0)
        if with_offsets:
            await writer.send_offsets_to_transaction({PARTITION: OFFSET_IN_TRANSACTION}, topic)
    reader = await consumer(isolation_level="read_committed")
    place = TopicPartition(topic, 0)
    reader.assign([place])
    reader.seek(place, 0)
    check(await read(reader, 1), ["value"])


TASKS: dict[str, Callable[[], Awaitable[None]]] = {
    "connect": connect,
    "produce": produce,
    "idempotent produce": idempotent_produce,
    "consume": consume,
    "group": group,
    "new group": new_group,
    "describe cluster": describe_cluster,
    "create topic": create_topic,
    "add partitions": add_partitions,
    "describe configs": describe_configs,
    "list topics": list_topics,
    "transaction": lambda: transaction(f"{NAME}-transaction", with_offsets=False),
    "offsets in a transaction": lambda: transaction(f"{NAME}-offsets", with_offsets=True),
}


async def attempt(task: str) -> None:
    try:
        await asyncio.wait_for(TASKS[task](), PATIENCE_SECONDS)
    except TimeoutError:
        report(task, text_of(Waits()))
    except Exception as error:  # noqa: BLE001  whatever the client raises is the outcome
        report(task, text_of(error))
    else:
        report(task, WORKS)


async def main() -> None:
    await asyncio.gather(*map(attempt, TASKS))
    os._exit(0)  # the clients are not stopped


if __name__ == "__main__":
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  warnings of clients that are not stopped
    asyncio.run(main())
