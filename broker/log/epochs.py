"""Which leader epoch began at which offset: `LeaderEpochFileCache` in Kafka (KIP-101, KIP-279; rules E-3, E-4).

Must never know: the log whose epochs these are; its end offset is an argument.
"""

from __future__ import annotations

from typing import NamedTuple

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochStart(NamedTuple):
    """`epoch` began at `start_offset`."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """Where an epoch ended: the largest known one not above the asked one, and its end offset; both -1: unknown."""

    epoch: int
    end_offset: int


UNDEFINED_END = EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)


class EpochCache:
    """Entries ascend strictly in epoch and in start offset. `latest` is the newest epoch, -1 when empty."""

    __slots__ = ("_entries", "latest")

    def __init__(self) -> None:
        self._entries: list[EpochStart] = []
        self.latest = UNDEFINED_EPOCH

    def entries(self) -> list[EpochStart]:
        return list(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`: a new leader, or the first batch of another epoch (E-3).

        Entries that do not stay below it in both are replaced (E-4). The latest epoch again, later, changes nothing.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} at offset {start_offset}: both must be >= 0")
        if epoch == self.latest and start_offset >= self._entries[-1].start_offset:
            return
        while self._entries and (self._entries[-1].epoch >= epoch or self._entries[-1].start_offset >= start_offset):
            self._entries.pop()
        self._entries.append(EpochStart(epoch, start_offset))
        self.latest = epoch

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The largest known epoch not above `epoch`, and the offset where it ended (E-3)."""
        if epoch == UNDEFINED_EPOCH or epoch > self.latest:
            return UNDEFINED_END
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        known = epoch
        for entry in self._entries:
            if entry.epoch > epoch:
                return EpochEnd(known, entry.start_offset)
            known = entry.epoch
        raise AssertionError("an epoch below the latest has a successor")

    def epoch_at(self, offset: int) -> int:
        """The epoch that covers `offset`, -1 if it lies before the first."""
        for entry in reversed(self._entries):
            if entry.start_offset <= offset:
                return entry.epoch
        return UNDEFINED_EPOCH

    def earliest(self) -> EpochStart | None:
        return self._entries[0] if self._entries else None

    def truncate_from_end(self, log_end_offset: int) -> None:
        """The log now ends at `log_end_offset`: epochs that began there or later are gone (E-4)."""
        while self._entries and self._entries[-1].start_offset >= log_end_offset:
            self._entries.pop()
        self._note_latest()

    def truncate_from_start(self, log_start_offset: int) -> None:
        """The log now begins at `log_start_offset`: the epoch that covers it begins there (E-4)."""
        gone = 0
        while gone < len(self._entries) and self._entries[gone].start_offset <= log_start_offset:
            gone += 1
        if gone:
            self._entries[:gone] = [EpochStart(self._entries[gone - 1].epoch, log_start_offset)]

    def clear(self) -> None:
        self._entries.clear()
        self._note_latest()

    def _note_latest(self) -> None:
        self.latest = self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH
