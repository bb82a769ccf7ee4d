"""Start offsets of leader epochs: `LeaderEpochFileCache` in Kafka (KIP-101, KIP-279; rules E-3, E-4).

This module does not depend on the log to which the epochs belong; the log's end offset is an argument.
"""

from __future__ import annotations

from typing import NamedTuple

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochStart(NamedTuple):
    """A leader epoch and the offset at which it began."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The result of looking up a leader epoch: the largest known epoch not above it, and the offset at which that epoch ends.

    If the requested epoch is below the earliest known epoch, the result has the requested epoch and the start offset of the earliest known epoch.
    Both fields are -1 if the requested epoch is -1 or above the latest known epoch.
    """

    epoch: int
    end_offset: int


UNDEFINED_END = EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)


class EpochCache:
    """The leader epochs of a log, with their start offsets, in ascending order: of two epochs, the larger one starts at a higher offset.

    `latest` is the newest epoch, -1 if there are no epochs.
    """

    __slots__ = ("_entries", "latest")

    def __init__(self) -> None:
        self._entries: list[EpochStart] = []
        self.latest = UNDEFINED_EPOCH

    def entries(self) -> list[EpochStart]:
        return list(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` begins at `start_offset`, because the replica became leader or got the first batch of this epoch (E-3).

        Earlier entries with an equal or higher epoch or start offset are removed (E-4). Assigning the latest epoch again at the same or a later
        offset has no effect.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch and start offset must be at least 0 (got {epoch} and {start_offset})")
        if epoch == self.latest and start_offset >= self._entries[-1].start_offset:
            return
        while self._entries and (self._entries[-1].epoch >= epoch or self._entries[-1].start_offset >= start_offset):
            self._entries.pop()
        self._entries.append(EpochStart(epoch, start_offset))
        self.latest = epoch

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Return the largest known epoch not above `epoch`, and its end offset (E-3).

        The latest epoch ends at `log_end_offset`. If `epoch` is below the earliest known epoch, the result is `epoch` and the start offset of the
        earliest known epoch. If `epoch` is -1 or above the latest epoch, the result is (-1, -1).
        """
        if epoch == UNDEFINED_EPOCH or epoch > self.latest:
            return UNDEFINED_END
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        known_epoch = epoch
        for entry in self._entries:
            if entry.epoch > epoch:
                return EpochEnd(known_epoch, entry.start_offset)
            known_epoch = entry.epoch
        raise AssertionError(
            f"the leader epochs of a log are inconsistent: the latest is {self.latest}, but no epoch above {epoch} was found; "
            "please report this bug"
        )

    def epoch_at(self, offset: int) -> int:
        """Return the epoch that covers `offset`, -1 if the offset is before the first epoch."""
        for entry in reversed(self._entries):
            if entry.start_offset <= offset:
                return entry.epoch
        return UNDEFINED_EPOCH

    def earliest(self) -> EpochStart | None:
        return self._entries[0] if self._entries else None

    def truncate_from_end(self, log_end_offset: int) -> None:
        """Remove the epochs that began at `log_end_offset` or later. Call it after the log was truncated to this offset (E-4)."""
        while self._entries and self._entries[-1].start_offset >= log_end_offset:
            self._entries.pop()
        self._note_latest()

    def truncate_from_start(self, log_start_offset: int) -> None:
        """Remove the epochs that ended at or before `log_start_offset`. The epoch that contains this offset then begins there (E-4)."""
        count = 0
        while count < len(self._entries) and self._entries[count].start_offset <= log_start_offset:
            count += 1
        if count:
            self._entries[:count] = [EpochStart(self._entries[count - 1].epoch, log_start_offset)]

    def clear(self) -> None:
        self._entries.clear()
        self._note_latest()

    def _note_latest(self) -> None:
        self.latest = self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH
