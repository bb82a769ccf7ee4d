"""The partitions of an internal topic that one broker coordinates: those that it leads, once they are loaded.

Corresponds to `ownedPartitions` and `loadingPartitions` of Kafka's coordinators. This module does not depend on groups or transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from kafkaproto.broker.runtime.timers import Timer, Timers
from kafkaproto.error_codes import ErrorCode
from kafkaproto.partitioner import java_hash


class Ownership:
    """The partitions of an internal topic that this broker coordinates.

    load, unload: functions called with (partition, current time in ms) when the broker starts or stops coordinating a partition. load_ms: a function
    that returns how long loading takes in ms; 0 loads at once.
    """

    def __init__(
        self,
        timers: Timers,
        load: Callable[[int, int], None],
        unload: Callable[[int, int], None],
        load_ms: Callable[[], int],
    ) -> None:
        self._timers = timers
        self._load = load
        self._unload = unload
        self._load_ms = load_ms
        self.partition_count = 0
        """The number of partitions from which the partition of a group or transactional id is computed; 0 before the internal topic exists.

        It stays the same until the topic is deleted or the broker stops, even if partitions are added to the topic (M-8).
        """
        self._loading: dict[int, Timer] = {}
        self._loaded: set[int] = set()

    @property
    def is_loading(self) -> bool:
        """Return whether this broker is still loading the records of any partition of the internal topic."""
        return bool(self._loading)

    def partition_of(self, key: str, count_without_topic: int = 0) -> int:
        """Return the partition of the coordinator's topic that stores the group or transactional id `key` (GO-3, TX-1).

        count_without_topic: the number of partitions that the topic gets when it is created. While the topic does not exist, the result is the
        partition that will store the key, or -1 if this argument is 0.
        """
        count = self.partition_count or count_without_topic
        return java_hash(key) % count if count else -1

    def refusal(self, key: str) -> int:
        """Return 0 if this broker coordinates the group or transactional id `key`, otherwise the error code for the client (GC-7, TX-3).

        The error is COORDINATOR_LOAD_IN_PROGRESS while the partition of `key` is being loaded, else NOT_COORDINATOR. An empty group id is
        allowed, because offsets may be stored under it; handlers reject it where it is invalid.
        """
        index = self.partition_of(key)
        if index in self._loaded:
            return ErrorCode.NONE
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if index in self._loading else ErrorCode.NOT_COORDINATOR

    def change(self, led: Iterable[int], partition_count: int, now_ms: int) -> None:
        """Set the partitions of the internal topic that this broker leads: load new ones, and unload those that it no longer leads (GO-12).

        led: the indexes of these partitions. partition_count: the number of partitions of the internal topic; 0 if it does not exist or the broker
        stops. Partitions that are added to the topic later do not change where groups and transactional ids are stored, as in Kafka.
        """
        led = set(led)
        for index in sorted((self._loaded | set(self._loading)) - led):
            loading = self._loading.pop(index, None)
            if loading is not None:
                loading.cancel()
            self._loaded.discard(index)
            self._unload(index, now_ms)
        if not partition_count or not self.partition_count:
            self.partition_count = partition_count
        load_ms = self._load_ms()
        for index in sorted(led - self._loaded - set(self._loading)):
            if load_ms <= 0:
                self._finish(index, now_ms)
            else:
                self._loading[index] = self._timers.at(now_ms + load_ms, partial(self._finish, index))

    def reload(self, index: int, now_ms: int) -> None:
        """Unload a partition and load its records again, because the state in memory differs from them. Does nothing if it is not loaded."""
        if index in self._loaded:
            self._unload(index, now_ms)
            self._load(index, now_ms)

    def _finish(self, index: int, now_ms: int) -> None:
        self._loading.pop(index, None)
        self._loaded.add(index)
        self._load(index, now_ms)
