"""The image of the Dockerfile without a container engine: its instructions run in an empty folder, the root of the image.

A virtual environment replaces the Python of the base image. Absolute paths of instructions and options are below the folder. The user is
ignored (the folder's owner runs everything), and so is the isolation of the network. An instruction, flag or form that this module does not
support is an error, so that no part of the Dockerfile is skipped.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import venv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

SHELL_CHARACTERS = re.compile(r"[&|;<>$`*?(){}~]")
HEALTHCHECK_FLAGS = ("interval", "timeout", "start-period", "retries")


class NotKnown(Exception):
    """An instruction that this module does not support."""


class Instruction(NamedTuple):
    """One instruction of a Dockerfile. kind: its keyword in upper case. text: its arguments."""

    kind: str
    text: str


def instructions(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile. Raises NotKnown for directives and here-documents."""
    if re.match(r"#\s*\w+\s*=", text):
        raise NotKnown(text.splitlines()[0])
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        if line.strip():
            kind, _, rest = line.strip().partition(" ")
            if "<<" in rest:
                raise NotKnown(line)
            yield Instruction(kind.upper(), rest.strip())


def is_ignored(path: str, patterns: Sequence[str]) -> bool:
    """Return whether .dockerignore excludes a path: the last pattern that matches it or a parent folder decides."""
    ignored = False
    parts = path.split("/")
    above = ["/".join(parts[: i + 1]) for i in range(len(parts))]
    for pattern in patterns:
        if any(_expression(pattern.removeprefix("!")).fullmatch(path_above) for path_above in above):
            ignored = not pattern.startswith("!")
    return ignored


def _expression(pattern: str) -> re.Pattern[str]:
    translated = re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
    return re.compile(translated.replace(r"\[", "[").replace(r"\]", "]"))


class Image:
    """A built image. entrypoint, healthcheck: arguments from the Dockerfile.

    base, user: the arguments of FROM and USER. exposed: the ports of EXPOSE. volumes: the paths of VOLUME. with_python: whether
    the base image includes Python. Raises NotKnown, json.JSONDecodeError for an invalid list, subprocess.CalledProcessError.
    """

    def __init__(self, source: Path, root: Path, *, with_python: bool = True) -> None:
        self.root = root
        self.base = self.user = ""
        self.entrypoint: list[str] = []
        self.healthcheck: list[str] = []
        self.exposed: list[int] = []
        self.volumes: list[str] = []
        self._source = source
        self._folder = "/"
        ignore = source / ".dockerignore"
        lines = ignore.read_text().splitlines() if ignore.exists() else []
        self._ignored = [line for line in lines if line and not line.startswith("#")]
        if with_python:
            venv.create(root / "usr", with_pip=True, symlinks=True)
        for instruction in instructions((source / "Dockerfile").read_text()):
            self._perform(instruction)

    def _perform(self, instruction: Instruction) -> None:
        kind, text = instruction
        match kind:
            case "FROM" if re.fullmatch(r"\S+", text) and not self.base:
                self.base = text
            case "WORKDIR" if text.startswith("/"):
                self._folder = text
                self.path(text).mkdir(parents=True, exist_ok=True)
            case "COPY":
                self._copy(text.split())
            case "RUN" if not SHELL_CHARACTERS.search(text):
                command = self.inside(shlex.split(text))
                subprocess.run(command, cwd=self.path(self._folder), env=self.environment({}), check=True)
            case "VOLUME":
                self.volumes += json.loads(text)
            case "USER" if re.fullmatch(r"\d+:\d+", text):
                self.user = text
            case "EXPOSE":
                self.exposed += map(int, text.split())
            case "HEALTHCHECK":
                self.healthcheck = self._check(text)
            case "ENTRYPOINT":
                self.entrypoint = json.loads(text)
            case _:
                raise NotKnown(f"{kind} {text}")

    def _copy(self, words: list[str]) -> None:
        *sources, target = words
        if any(word.startswith("--") for word in words) or not sources or re.search(r"[*?\[]", " ".join(words)):
            raise NotKnown(f"COPY {' '.join(words)}")
        folder = target.endswith("/") or len(sources) > 1
        to = self.path(os.path.join(self._folder, target))
        for name in sources:
            if is_ignored(name, self._ignored):
                raise FileNotFoundError(f"COPY {name}: .dockerignore leaves it out")
            if (self._source / name).is_dir():
                shutil.copytree(self._source / name, to, symlinks=True, ignore=self._ignored_names, dirs_exist_ok=True)
            else:
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self._source / name, to / name if folder else to)

    def _ignored_names(self, folder: str, names: list[str]) -> list[str]:
        relative = Path(folder).relative_to(self._source).as_posix()
        return [name for name in names if is_ignored(f"{relative}/{name}", self._ignored)]

    def _check(self, text: str) -> list[str]:
        flags, command, arguments = text.partition("CMD ")
        unknown = [flag for flag in flags.split() if flag.partition("=")[0].removeprefix("--") not in HEALTHCHECK_FLAGS]
        if unknown or not command:
            raise NotKnown(f"HEALTHCHECK {text}")
        checked: list[str] = json.loads(arguments)
        return checked

    def path(self, inside: str) -> Path:
        """Return the location of a path of the image on this machine."""
        return self.root / inside.lstrip("/")

    def inside(self, words: Sequence[str]) -> list[str]:
        """Return the arguments with absolute paths moved below the folder."""
        return [str(self.path(word)) if word.startswith("/") else word for word in words]

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a container, without Python's and Kafka's variables of this process and with the image's programs first."""
        left_out = ("PYTHON", "PYTEST", "COV", "KAFKA", "CLUSTER_ID", "VIRTUAL_ENV")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        return {**inherited, "PATH": f"{self.path('/usr/bin')}:/usr/bin:/bin", **variables}

    def run(self, command: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[str]:
        """Start the entry point as `docker run` does. command: the arguments after the name of the image."""
        return subprocess.Popen(
            self._with_path([*self.entrypoint, *command]),
            cwd=self.path(self._folder),
            env=self.environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def check(self, command: Sequence[str], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run the command of a health check in the container."""
        environment = self.environment(variables)
        folder = self.path(self._folder)
        return subprocess.run(
            self._with_path(command),
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def _with_path(self, command: Sequence[str]) -> list[str]:
        """Replace the program by its path in the image; programs of this machine are not found."""
        program, *arguments = self.inside(command)
        return [str(self.path("/usr/bin") / program), *arguments]
