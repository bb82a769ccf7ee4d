"""Transactions with aiokafka; see `lines.py`."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.support.transactions.programs.lines import FETCH_WAIT_MS, PATIENCE_SECONDS, Command, Fields, serve


class Transactor:
    """A producer and the group whose offsets it commits."""

    def __init__(self) -> None:
        self.producer: Any = None
        self.group: str | None = None

    async def act(self, command: Command) -> Fields:
        match command["command"]:
            case "init":
                await self.init(command)
            case "begin":
                await self.producer.begin_transaction()
            case "send":
                value = command["value"].encode()
                await self.producer.send_and_wait(command["topic"], value, partition=command["partition"])
            case "offsets":
                offsets = {TopicPartition(command["topic"], 0): command["offset"]}
                await self.producer.send_offsets_to_transaction(offsets, self.group)
            case "commit":
                await self.producer.commit_transaction()
            case "abort":
                await self.producer.abort_transaction()
            case "read":
                return {"values": await read(command)}
        return {}

    async def init(self, command: Command) -> None:
        self.group = command["group"]
        self.producer = AIOKafkaProducer(
            bootstrap_servers=command["bootstrap"],
            client_id=command["transactional_id"],
            transactional_id=command["transactional_id"],
            transaction_timeout_ms=command["timeout_ms"],
        )
        await self.producer.start()


async def read(command: Command) -> list[list[str]]:
    values: list[list[str]] = []
    consumer = AIOKafkaConsumer(
        bootstrap_servers=command["bootstrap"],
        isolation_level=command["isolation"],
        fetch_max_wait_ms=FETCH_WAIT_MS,
    )
    await consumer.start()
    for partition in range(command["partitions"]):
        place = TopicPartition(command["topic"], partition)
        consumer.assign([place])
        consumer.seek(place, 0)
        values.append(await read_one(consumer, place, command))
    await consumer.stop()
    return values


async def read_one(consumer: Any, place: TopicPartition, command: Command) -> list[str]:
    """Return the values of one partition, as `lines.read_values` does."""
    values: list[str] = []
    try:
        async with asyncio.timeout(PATIENCE_SECONDS) as limit:
            while True:
                values.append((await consumer.getone(place)).value.decode())
                if values[-1] == command["last"]:
                    limit.reschedule(asyncio.get_running_loop().time() + command["further_ms"] / 1000)
    except TimeoutError:
        if command["last"] not in values:
            raise
    return values


if __name__ == "__main__":
    transactor, loop = Transactor(), asyncio.new_event_loop()
    serve(
        lambda command: loop.run_until_complete(asyncio.wait_for(transactor.act(command), PATIENCE_SECONDS)),
        lambda error: type(error).__name__,
    )
