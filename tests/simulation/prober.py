"""A client whose responses follow from the replica's contents: fetch at any offset, list offsets, delete records."""

from __future__ import annotations

from typing import Any

from kafkaproto.broker.replication.partition import Partition
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.simulation.client import UNSURE, Client, E, TopicPartition
from tests.simulation.line import Line
from tests.support.wire import fetch, flat

LATEST, EARLIEST = -1, -2


class Prober(Client):
    """Sends single requests and compares each response with the contents of the replica."""

    def act(self) -> None:
        self.world.chance.choice([self._probe, self._probe, self._list, self._delete])()

    def _free_line(self, at: TopicPartition, anywhere: bool) -> tuple[Line, Partition] | None:
        chance = self.world.chance
        state = self.world.image.partition(*at)
        broker_id = chance.choice(state.replicas) if anywhere else state.leader
        partition = self.world.replica(broker_id, *at) if broker_id >= 0 else None
        line = None if partition is None else self.line(broker_id)
        return (line, partition) if line is not None and partition is not None and line.is_idle else None

    def _probe(self) -> None:
        """Fetch at a random offset (F-15 to F-17, D1 to D3)."""
        at = self.some_partition()
        if (free_line := self._free_line(at, anywhere=True)) is None:
            return
        line, partition = free_line
        log = partition.log
        offset = self.world.chance.randint(max(0, log.log_start_offset - 3), log.log_end_offset + 2)
        expected_end, bound = self._expected(partition, offset)
        version = 11

        def on_response(answer: Any) -> None:
            if answer.throttle_time_ms:
                return  # T-4
            [(_, data)] = flat(answer)
            assert data.error_code == expected_end, (
                f"{partition}: {offset} returns {data.error_code}, not {expected_end}"
            )
            if expected_end == 0 and not self.world.truth.of(partition).compacted:
                assert bool(data.records) == (offset < bound), f"{partition}: from {offset} below {bound}"

        line.request(fetch((*at, offset), version=version), version, on_response)

    def _expected(self, partition: Partition, offset: int) -> tuple[int, int]:
        log = partition.log
        watermark, end = log.high_watermark, log.log_end_offset
        bound = min(watermark, end)
        if offset < log.log_start_offset:
            return E.OFFSET_OUT_OF_RANGE, bound
        if self.world.semantics == "kip":
            follower_is_behind = not partition.is_leader and end < offset <= watermark
            if follower_is_behind or watermark < offset <= end:
                return E.OFFSET_NOT_AVAILABLE, bound
        return (E.OFFSET_OUT_OF_RANGE if offset > end else 0), bound

    def _list(self) -> None:
        """List offsets (L-5, L-8)."""
        at = self.some_partition()
        if (free_line := self._free_line(at, anywhere=False)) is None:
            return
        line, partition = free_line
        timestamp = self.world.chance.choice([LATEST, EARLIEST])
        log = partition.log
        expected_offset = (0, log.high_watermark if timestamp == LATEST else log.log_start_offset)
        if timestamp == LATEST and log.high_watermark < partition.epoch_start_offset:
            expected_offset = (E.OFFSET_NOT_AVAILABLE, -1)

        def on_response(answer: Any) -> None:
            partition_response = answer.topics[0].partitions[0]
            assert (partition_response.error_code, partition_response.offset) == expected_offset, (
                f"{partition}: {timestamp} is at {partition_response.offset}, not {expected_offset}"
            )

        topics = [ListOffsetsTopic(at[0], [ListOffsetsPartition(at[1], -1, timestamp)])]
        line.request(ListOffsetsRequest(-1, 0, topics), 7, on_response)

    def _delete(self) -> None:
        """Delete records: the leader's log start moves at once (L-11)."""
        at = self.some_partition()
        if self.world.chance.random() > 0.3 or (free_line := self._free_line(at, anywhere=False)) is None:
            return
        line, partition = free_line
        log = partition.log
        offset = self.world.chance.randint(log.log_start_offset, log.high_watermark)
        deletes, start = partition.deletes, max(offset, log.log_start_offset)
        refuses = self.world.refuses
        history = self.world.truth.of(partition)
        history.deleted_to = max(history.deleted_to, offset)

        def on_response(answer: Any) -> None:
            partition_response = answer.topics[0].partitions[0]
            if not deletes:
                assert partition_response.error_code == E.POLICY_VIOLATION, partition_response.error_code
                return
            allowed = {0, *UNSURE} | ({E.KAFKA_STORAGE_ERROR} if refuses else set())
            assert partition_response.error_code in allowed, partition_response.error_code
            if partition_response.error_code == 0:
                assert partition_response.low_watermark >= offset, (
                    f"{partition}: deleted below {partition_response.low_watermark}, requested {offset}"
                )

        topics = [DeleteRecordsTopic(at[0], [DeleteRecordsPartition(at[1], offset)])]
        line.request(DeleteRecordsRequest(topics, 1000), 1, on_response)
        moves = deletes and partition.is_leader and not refuses
        assert not moves or log.log_start_offset >= start, f"{partition}: log start {log.log_start_offset}, not {start}"
