"""A client that sends small requests without waiting for responses, also in old versions that do not report throttle times."""

from __future__ import annotations

from typing import Any

from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.simulation.producer import Producer
from tests.support.wire import metadata, produce

MOST_UNDER_WAY = 6
LATEST = -1


class Pipeliner(Producer):
    """Sends requests that cost only request time, and produces with acks=0 in between."""

    def act(self) -> None:
        chance = self.world.chance
        line = self.line(chance.choice(self.world.running()))
        if line is None:
            return
        for _ in range(chance.choice([1, 1, 2, 4])):
            if line.is_open and len(line.sent) < MOST_UNDER_WAY:
                request, version = self._some()
                line.request(request, version, lambda answer: None)

    def _some(self) -> tuple[Any, int]:
        chance = self.world.chance
        at = self.some_partition()
        kind = chance.randrange(4)
        if kind == 0:
            return ApiVersionsRequest("pipeliner", "1"), chance.choice([0, 3])
        if kind == 1:
            return metadata([at[0]]), chance.choice([1, 2, 5, 8])
        if kind == 2:
            topics = [ListOffsetsTopic(at[0], [ListOffsetsPartition(at[1], -1, LATEST)])]
            return ListOffsetsRequest(-1, 0, topics), chance.choice([1, 2, 7])
        return produce(at[0], self.batch(at[0]), at[1], acks=0), chance.choice([3, 9])
