"""A program that takes part in a race: started, pinned, measured, stopped. Must never know what is raced."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path


class Program:
    """A process that serves the address which it prints first. A subclass may start something else.

    seen: cell to its numbers. idle_mb, after_mb: resident before and after the race.
    """

    def __init__(
        self,
        name: str,
        command: list[str],
        folder: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        """Prepare a program that runs in `folder` with exactly this environment; by default in those of this process."""
        self.name = name
        self.command = command
        self.folder = folder
        self.environment = environment
        self.address = ""
        self.idle_mb = 0.0
        self.after_mb = 0.0
        self.most_memory_file_bytes = 0
        self.seen: dict[str, list[float]] = {}
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        time.sleep(0.3)
        self.idle_mb = self.resident_mb()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def resident_mb(self) -> float:
        """VmRSS."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("VmRSS is not told here; the race runs on Linux")

    def note_memory(self) -> None:
        """Remember the most memory files that it ever held."""
        self.most_memory_file_bytes = max(self.most_memory_file_bytes, self.memory_file_bytes())

    def memory_file_bytes(self) -> int:
        """Blocks of all memory files that the process holds open."""
        total = 0
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                if "memfd:" in os.readlink(entry):
                    total += os.stat(entry).st_blocks * 512
            except FileNotFoundError:
                continue
        return total

    def pin(self, cores: set[int]) -> None:
        """Let all its threads run on these cores only."""
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), cores)
