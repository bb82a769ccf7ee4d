"""The script `kafkaproto`: finds the command and imports what it needs, and only that."""

import gc
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

USAGE = """usage: kafkaproto broker [options]     a Kafka broker to test against; `kafkaproto broker --help` shows the options
       kafkaproto proxy [options]      record the traffic between clients and any cluster
       kafkaproto decode [options]     bytes to JSON, with the offset of every field
       kafkaproto encode [options]     JSON to bytes
       kafkaproto show API VERSION     the layout of a version, and the code made from it
       kafkaproto apis [--release R]   API keys and versions, of this codec or of a Kafka release
       kafkaproto trace show DIR       the requests that `kafkaproto broker --trace DIR` has recorded, one per line
       kafkaproto trace cut DIR        a part of them as a capture file, for Wireshark
With the extra "conformance" (pip install 'kafkaproto[conformance]'):
       kafkaproto conformance [options]  black-box tests of a running cluster, as a card: rule, test, outcome
With the extra "spark" (pip install 'kafkaproto[spark]'):
       kafkaproto tables TRACE OUT     a trace or a capture as Parquet tables
       kafkaproto stream TRACE OUT     the same tables while the trace is being written
       kafkaproto audit OUT            the rules of Kafka over such tables, as text or JSON
       kafkaproto report TRACE         tables, rules and statistics of a trace, as one page
       kafkaproto live BOOTSTRAP       throttled and lagging clients, from the journal topic of a broker
       kafkaproto pack OUT.zip         this package as an archive, for spark-submit --py-files
"""

COMMANDS_OF_EXTRAS = {
    "conformance": ("conformance", "kafkaproto.conformance.command_line"),
    "tables": ("spark", "kafkaproto.pipeline.trace.tables"),
    "stream": ("spark", "kafkaproto.pipeline.trace.streaming"),
    "audit": ("spark", "kafkaproto.pipeline.trace.audit.__main__"),
    "report": ("spark", "kafkaproto.pipeline.trace.report.__main__"),
    "live": ("spark", "kafkaproto.pipeline.live.__main__"),
    "pack": ("spark", "kafkaproto.pipeline.pack"),
}
"""Command to (the extra whose packages it needs, its module)."""
MISSING_EXTRA = 3
"""Exit status when a command needs packages of an extra that is not installed."""


def main() -> int:
    if sys.platform == "win32":
        sys.stderr.write("kafkaproto runs on Linux and macOS; on Windows use it inside WSL\n")
        return 2
    command, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if command == "broker":
        return broker(arguments)
    if command == "proxy":
        return proxy(arguments)
    if command in ("decode", "encode", "show", "apis"):
        from kafkaproto.command_line import main as codec_command

        return codec_command(command, arguments)
    if command == "trace":
        from kafkaproto.trace.command_line import main as trace_command

        return trace_command(arguments)
    if command in COMMANDS_OF_EXTRAS:
        return with_extra(command, arguments)
    wanted_help = command in ("-h", "--help", "help")
    (sys.stdout if wanted_help else sys.stderr).write(USAGE)
    return 0 if wanted_help else 2


def with_extra(command: str, arguments: list[str]) -> int:
    """Run a command that needs an extra; without its packages, say how to install them and return MISSING_EXTRA."""
    extra, module = COMMANDS_OF_EXTRAS[command]
    try:
        run: Callable[[list[str]], int] = import_module(module).main
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "kafkaproto":
            raise
        sys.stderr.write(f"kafkaproto {command}: {error.name} is missing: pip install 'kafkaproto[{extra}]'\n")
        return MISSING_EXTRA
    return run(arguments)


def broker(arguments: list[str]) -> int:
    """Run `kafkaproto broker`. An interrupt during the imports ends it without a traceback."""
    gc.disable()  # nothing that imports leave is garbage; the broker turns it on again
    try:
        from kafkaproto.broker.server.main import main as run

        return run(arguments)
    except KeyboardInterrupt:
        return 0


def proxy(arguments: list[str]) -> int:
    """Run `kafkaproto proxy`. An interrupt during the imports ends it without a traceback."""
    try:
        from kafkaproto.broker.proxy.main import main as run

        return run(arguments)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    # Run as a file (spark-submit does), its own folder stands first on the path and would hide modules of the standard library.
    if Path(sys.path[0]) == Path(__file__).parent:
        sys.path[0] = str(Path(__file__).parents[1])
    sys.exit(main())
