"""The script `kafkaproto`: runs a command, and imports only what the command needs."""

import gc
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

USAGE = """usage: kafkaproto broker [options]       start a Kafka cluster of one or more brokers for tests
       kafkaproto settings [PATTERN]     list Kafka's settings and their effect in this broker
       kafkaproto health [HOST:PORT]     check whether brokers respond (exit status 0: all do)
       kafkaproto proxy [options]        record the traffic between clients and any Kafka cluster
       kafkaproto decode [options]       decode a request, response or record batch to JSON
       kafkaproto encode [options]       encode a request or response, given as JSON, to bytes
       kafkaproto show API VERSION       print the fields of an API version and its generated code
       kafkaproto apis [options]         list API versions of this package or of a Kafka release
       kafkaproto trace show PATH        print a recorded trace, one request per line
       kafkaproto trace cut PATH         write part of a trace as a capture file for Wireshark
With the extra "conformance" (in a checkout: pip install '.[conformance]'):
       kafkaproto conformance [options]  test whether a running cluster behaves like Kafka
With the extra "spark" (in a checkout: pip install '.[spark]'):
       kafkaproto tables TRACE OUT       write a trace or a network capture as Parquet tables
       kafkaproto stream TRACE OUT       write the same tables while the trace is recorded
       kafkaproto audit OUT              check the traffic in the tables against Kafka's rules
       kafkaproto report TRACE           write an HTML page with statistics and broken rules
       kafkaproto live HOST:PORT         watch throttled and lagging clients of a running broker
       kafkaproto pack OUT               write this package as a zip archive for spark-submit

`kafkaproto COMMAND --help` explains a command and its options.
`kafkaproto --version` prints the version.

Examples:
  # start one broker on 127.0.0.1:9092 with a topic of six partitions
  kafkaproto broker --topic orders:6
  # decode a request that a file contains, with its length and header
  kafkaproto decode --file request.bin
"""

CODEC_COMMANDS = ("decode", "encode", "show", "apis")


class OfExtra(NamedTuple):
    """A command of the command line that works only if an extra, an optional group of packages, is installed.

    extra: the name of the extra. module: the module that runs the command. options: the module that defines the options of the command; it needs no
    extra.
    """

    extra: str
    module: str
    options: str


_PIPELINE = "kafkaproto.pipeline"
_SPARK_MODULES = {
    "tables": f"{_PIPELINE}.trace.tables",
    "stream": f"{_PIPELINE}.trace.streaming",
    "audit": f"{_PIPELINE}.trace.audit.__main__",
    "report": f"{_PIPELINE}.trace.report.__main__",
    "live": f"{_PIPELINE}.live.__main__",
    "pack": f"{_PIPELINE}.pack",
}
COMMANDS_OF_EXTRAS = {
    "conformance": OfExtra("conformance", "kafkaproto.conformance.command_line", "kafkaproto.conformance.options"),
    **{command: OfExtra("spark", module, f"{_PIPELINE}.options") for command, module in _SPARK_MODULES.items()},
}
MISSING_EXTRA = 3
"""The exit status of a command that needs packages of an extra (an optional group of packages) that is not installed."""
COMMANDS = ("broker", "settings", "health", "proxy", *CODEC_COMMANDS, "trace", *COMMANDS_OF_EXTRAS)
HELP = ("-h", "--help")


def main() -> int:
    if sys.platform == "win32":
        sys.stderr.write("kafkaproto runs on Linux and macOS; on Windows use it inside WSL\n")
        return 2
    command, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if command == "help" and arguments:
        command, arguments = arguments[0], ["--help"]
    if command == "broker":
        return broker(arguments)
    if command == "proxy":
        return proxy(arguments)
    if command == "settings":
        from kafkaproto.broker.server.settings_command import main as settings_command

        return settings_command(arguments)
    if command == "health":
        from kafkaproto.broker.server.health import main as health_command

        return health_command(arguments)
    if command in CODEC_COMMANDS:
        from kafkaproto.command_line import main as codec_command

        return codec_command(command, arguments, served_apis)
    if command == "trace":
        from kafkaproto.trace.command_line import main as trace_command

        return trace_command(arguments)
    if command in COMMANDS_OF_EXTRAS:
        return with_extra(command, arguments)
    return without_command(command)


def without_command(command: str) -> int:
    """Print the help or the version of `kafkaproto`, or an error for an unknown command or option. Returns the exit status.

    command: the first argument of the command line, such as `--help` or `version`; empty if there is none.
    """
    if command in ("--version", "-V", "version"):
        from kafkaproto import __version__

        sys.stdout.write(f"kafkaproto {__version__}\n")
        return 0
    if command in ("help", *HELP):
        sys.stdout.write(USAGE)
        return 0
    if not command:
        sys.stderr.write(USAGE)
        return 2
    from kafkaproto.arguments import did_you_mean

    word = "option" if command.startswith("-") else "command"
    hint = did_you_mean(command, ("--help", "--version") if word == "option" else COMMANDS)
    sys.stderr.write(f'kafkaproto: unknown {word} "{command}"{hint or "; kafkaproto --help lists the commands"}\n')
    return 2


def served_apis(release: str) -> dict[int, tuple[int, int]]:
    """Return the APIs that `kafkaproto broker --release` serves, as a dict of API keys to (lowest version, highest version)."""
    from kafkaproto import releases
    from kafkaproto.broker.requests.registry import advertised

    return {key: (api.min_version, api.max_version) for key, api in advertised(releases.versions(release)).items()}


def with_extra(command: str, arguments: list[str]) -> int:
    """Run a command that needs an extra, which is an optional group of packages, and return the exit status.

    If packages are missing, print how to install them, and return 3 (`MISSING_EXTRA`). The command's help needs no extra.
    """
    extra, module, options = COMMANDS_OF_EXTRAS[command]
    if not {*HELP}.isdisjoint(arguments):
        import_module(options).parser(command).print_help()
        return 0
    try:
        run: Callable[[list[str]], int] = import_module(module).main
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "kafkaproto":
            raise
        sys.stderr.write(
            f"kafkaproto {command}: {error.name} is missing: install it in a checkout with pip install '.[{extra}]'\n"
        )
        return MISSING_EXTRA
    return run(arguments)


def broker(arguments: list[str]) -> int:
    """Run `kafkaproto broker`. An interrupt (Ctrl+C) during the imports ends the command without a traceback."""
    gc.disable()  # imports leave no garbage; the broker enables it again once it serves
    try:
        from kafkaproto.broker.server.main import main as run

        return run(arguments)
    except KeyboardInterrupt:
        return 0
    finally:
        gc.enable()


def proxy(arguments: list[str]) -> int:
    """Run `kafkaproto proxy`. An interrupt (Ctrl+C) during the imports ends the command without a traceback."""
    try:
        from kafkaproto.broker.proxy.main import main as run

        return run(arguments)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    # If it is run as a file, as by spark-submit, its own folder is first on the path and would hide modules of the standard library.
    if Path(sys.path[0]) == Path(__file__).parent:
        sys.path[0] = str(Path(__file__).parents[1])
    sys.exit(main())
