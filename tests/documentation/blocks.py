"""Code blocks of a Markdown page, and how a reader's tool chain runs them.

A page is run from top to bottom in one empty folder, as a reader would type it. What happens to a block depends on its language:

- `python`: a block with a function `test_...` is run by pytest, any other as a script.
- `bash`: run by `bash -euo pipefail`.
- `text`: what the block above it writes to stdout. A line of three dots stands for any lines, three dots within a line for any text.
- every other language, such as `java` or `yaml`: needs a directive.

An HTML comment directly above a block changes that: `<!-- run: DIRECTIVE -->`.

- `background`: the command keeps running until the end of the page. The page continues when it prints its first line.
- `file NAME`: the block is written to NAME and not run.
- `status N`: the command must exit with status N instead of 0.
- `needs WHAT`: the block is not run here because it needs WHAT, one of `NEEDS`. Its syntax is checked.
- `picture`: the block is a drawing.
- `output of NAME`: the block is part of a document that another test produces or checks, named here for the reader of the source.

Ports of the text (9092 to 9096 and 19092 to 19096) are replaced by free ones, and back again in the output.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
NEEDS = {
    "a checkout": "it installs the package, as tests/test_packaging.py does, or is a target of the Makefile; targets and extras must exist",
    "a container engine": (
        "tests/documentation/test_containers.py compares its options and variables with those of the broker; "
        "tests/test_image.py runs the entry point of the image with them"
    ),
    "a cluster of Spark": "tests/pipeline/test_cluster.py runs this very block, with a local cluster of two workers as $MASTER",
    "tcpdump": "only root may capture packets",
}
"""Maps what a block can need to how the block is checked instead, or to why it is not."""
TIMEOUT_S = 240
_BLOCK = re.compile(
    r"^(?P<indent> *)(?:<!-- run: (?P<directive>.*?) -->\n(?: *\n)*(?P=indent))?```(?P<language>[a-z]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PORT = re.compile(r"(?<!\d)(1?909[2-6])(?!\d)")


class PageError(AssertionError):
    """A block of a page does not do what the page says. The message names page, line and block."""


class Block(NamedTuple):
    """A fenced block. line: of its first line of code, from 1. directive: the text after `run:`, or an empty string."""

    line: int
    language: str
    directive: str
    text: str


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a Markdown page, those in lists, tabs and admonitions included, without their indentation."""
    return [
        Block(
            page.count("\n", 0, match.start("text")) + 1,
            match["language"],
            match["directive"] or "",
            re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE),
        )
        for match in _BLOCK.finditer(page)
    ]


def run_page(path: Path, folder: Path) -> int:
    """Run the blocks of a page in an empty folder. Returns how many were run. Raises PageError for the first that fails."""
    with ExitStack() as until_the_end, _free_ports() as ports:
        page = _Page(path, folder, ports, until_the_end)
        for block in blocks(path.read_text()):
            page.handle(block)
        return page.run_count


class _Page:
    """A page while its blocks run: its folder, its ports, and the output of its latest block."""

    def __init__(self, path: Path, folder: Path, ports: Mapping[str, str], until_the_end: ExitStack) -> None:
        self._path = path
        self._folder = folder
        self._ports = ports
        self._until_the_end = until_the_end
        self._output: str | None = None
        self.run_count = 0

    def handle(self, block: Block) -> None:
        """Run, write or check a block, as its language and directive say."""
        verb, _, rest = block.directive.partition(" ")
        actions: dict[str, Callable[[Block, str], None]] = {
            "": self._run,
            "background": self._start,
            "file": self._write,
            "status": self._run,
            "needs": self._check_syntax,
            "output": lambda *_: None,
            "picture": lambda *_: None,
        }
        if verb not in actions:
            raise self._error(
                block, f"unknown directive {block.directive!r}; known are {', '.join(filter(None, actions))}"
            )
        actions[verb](block, rest)

    def _run(self, block: Block, status: str) -> None:
        if block.language == "text":
            self._compare(block)
            return
        command = self._command(block)
        completed = subprocess.run(
            command,
            cwd=self._folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        self.run_count += 1
        self._output = self._with_ports_of_the_page(completed.stdout)
        if completed.returncode != int(status or 0):
            raise self._error(
                block,
                f"exit status {completed.returncode} instead of {status or 0}:\n{completed.stdout}{completed.stderr}",
            )

    def _command(self, block: Block) -> list[str]:
        text = self._with_free_ports(block.text)
        if block.language == "bash":
            return ["bash", "-euo", "pipefail", "-c", text]
        if block.language != "python":
            raise self._error(
                block, f"a block in {block.language or 'no language'} needs a directive, such as `run: file NAME`"
            )
        is_test = re.search(r"^(?:async )?def test_", text, re.MULTILINE) is not None
        script = self._folder / (f"test_block_{block.line}.py" if is_test else f"block_{block.line}.py")
        script.write_text(text)
        options = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"] if is_test else []
        return [sys.executable, *options, str(script)]

    def _start(self, block: Block, _: str) -> None:
        command = self._command(block)
        process = subprocess.Popen(
            command,
            cwd=self._folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        self._until_the_end.callback(_stop, process)
        assert process.stdout is not None
        self._output = self._with_ports_of_the_page(process.stdout.readline())
        self.run_count += 1
        if process.poll() not in (None, 0) or not self._output:
            raise self._error(block, f"ended at once:\n{self._output}{process.stdout.read()}")

    def _write(self, block: Block, name: str) -> None:
        file = self._folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self._with_free_ports(block.text))

    def _check_syntax(self, block: Block, need: str) -> None:
        if need not in NEEDS:
            raise self._error(block, f"unknown need {need!r}; known are {', '.join(NEEDS)}")
        if need == "a checkout":
            self._check_commands(block)
        try:
            if block.language == "bash":
                subprocess.run(["bash", "-n", "-c", block.text], capture_output=True, text=True, check=True)
            elif block.language == "python":
                compile(block.text, block.language, "exec")
            elif block.language == "yaml":
                yaml.safe_load(block.text)
            else:
                raise self._error(block, "the syntax of this language cannot be checked")
        except subprocess.CalledProcessError as error:
            raise self._error(block, error.stderr) from None
        except (SyntaxError, yaml.YAMLError) as error:
            raise self._error(block, str(error)) from None

    def _check_commands(self, block: Block) -> None:
        """Check that each line of a block runs an existing target of the Makefile, or installs the package with existing extras."""
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for line in block.text.splitlines():
            command = line.partition("#")[0].strip()
            install = re.fullmatch(r"pip install '?\.(?:\[([a-z,]+)\])?'?", command)
            make = re.fullmatch(r"make ([a-z-]+)(?: .*)?", command)
            install_extras = install[1].split(",") if install and install[1] else []
            if not (install or make) or set(install_extras) - set(extras) or (make and make[1] not in targets):
                raise self._error(block, f"no target of the Makefile and no extra of the package: {command}")

    def _compare(self, block: Block) -> None:
        if self._output is None:
            raise self._error(block, "a block of output without a block above it that was run")
        if not re.fullmatch(_pattern(block.text), self._output.strip("\n")):
            raise self._error(block, f"the output is\n{self._output}instead of\n{block.text}")

    def _with_free_ports(self, text: str) -> str:
        text = _PORT.sub(lambda match: self._ports[match[1]], text)
        return re.sub(
            r"^(kafkaproto broker)(?!.*--(?:port|help))", rf"\1 --port {self._ports['9092']}", text, flags=re.MULTILINE
        )

    def _with_ports_of_the_page(self, output: str) -> str:
        output = _COLOUR.sub("", output)
        for port, free in self._ports.items():
            output = re.sub(rf"(?<!\d){free}(?!\d)", port, output)
        return output

    def _error(self, block: Block, text: str) -> PageError:
        return PageError(f"{self._path.name}:{block.line} ({block.language}): {text}")


def _pattern(expected: str) -> str:
    """Return the regular expression of an output in which `...` stands for text that differs from run to run."""
    lines = [
        ".*" if line.strip() == "..." else r"[^\n]*".join(map(re.escape, line.rstrip().split("..."))) + r"[ \t]*"
        for line in expected.strip("\n").split("\n")
    ]
    text = "\n".join(lines)
    return "(?s:" + text.replace("\n.*\n", r"\n(?:.*\n)?").replace("\n.*", r"(?:\n.*)?") + ")"


def _environment() -> dict[str, str]:
    """Return the environment of a reader who works in a checkout: its `.venv` comes first, and colours are off."""
    scripts = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "NO_COLOR": "1",
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "PYSPARK_PYTHON": sys.executable,
    }


@contextmanager
def _free_ports() -> Iterator[dict[str, str]]:
    """Yield free ports for those of the pages: five in a row for 9092 to 9096, and five for 19092 to 19096."""
    rows = {"9092": _row_of_free_ports(), "19092": _row_of_free_ports()}
    yield {str(int(first) + i): str(free + i) for first, free in rows.items() for i in range(5)}


def _row_of_free_ports(count: int = 5) -> int:
    """Return the first of `count` consecutive ports on which nothing listens.

    These ports are below the ones that the kernel gives to connections, most of which a test with thousands of connections uses for a minute.
    """
    for _ in range(100):
        first = random.randrange(10_000, 32_768 - count)
        with ExitStack() as sockets:
            try:
                for port in range(first, first + count):
                    sockets.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            return first
    raise OSError(f"no {count} free ports in a row were found")


def _stop(process: subprocess.Popen[str]) -> None:
    """Interrupt a command that runs in the background, as Ctrl-C does, and kill it if it does not end within 10 s."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.stdout is not None:
        process.stdout.close()
