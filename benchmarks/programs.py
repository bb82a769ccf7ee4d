"""A program to measure, such as a broker: starts it, pins it to cores, measures its memory, stops it.

This module does not depend on what is measured.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Callable, Collection
from pathlib import Path


def choice_of(names: Collection[str]) -> Callable[[str], str]:
    """Return a function that accepts only the texts in `names`, for the parameter `type` of `ArgumentParser.add_argument`.

    The parameter `choices` is no alternative: it does not work for an optional list of arguments if the command line contains none of them.
    """

    def checked(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f'unknown name "{text}"; known are {", ".join(names)}')
        return text

    return checked


class Program:
    """A process that prints its address as its first line, such as a broker.

    seen: maps the name of a measurement to the measured numbers, one for each round. idle_mb, after_mb: resident memory in MiB before and after the
    benchmark.
    """

    def __init__(
        self,
        name: str,
        command: list[str],
        folder: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        """Prepare a program without starting it.

        name: the name of the program in tables. command: the command line that starts it. folder: its working directory. environment: its
        environment variables; None stands for the environment of this process.
        """
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
        """Return the resident memory (VmRSS) in MiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"/proc/{self.pid}/status has no VmRSS; this benchmark runs on Linux only")

    def note_memory(self) -> None:
        """Measure the size of the process's memory files (memfd_create), and keep the largest size so far in `most_memory_file_bytes`."""
        self.most_memory_file_bytes = max(self.most_memory_file_bytes, self.memory_file_bytes())

    def memory_file_bytes(self) -> int:
        """Return the allocated bytes of all memory files (memfd_create) that the process has open."""
        total = 0
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                if "memfd:" in os.readlink(entry):
                    total += os.stat(entry).st_blocks * 512
            except FileNotFoundError:
                continue
        return total

    def pin(self, cores: set[int]) -> None:
        """Restrict all threads of the process to the CPU cores with the numbers `cores`."""
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), cores)
