"""The script `kafkaproto`: finds the command and imports what it needs, and only that."""

import gc
import sys

USAGE = """usage: kafkaproto broker [options]     a Kafka broker to test against; `kafkaproto broker --help` shows the options
       kafkaproto proxy [options]      records what clients and any cluster say to each other
       kafkaproto decode [options]     bytes to JSON, with the offset of every field
       kafkaproto encode [options]     JSON to bytes
       kafkaproto show API VERSION     the layout of a version, and the code made from it
       kafkaproto apis [--release R]   API keys and versions, of this codec or of a Kafka release
       kafkaproto trace show DIR       what `kafkaproto broker --trace DIR` has recorded, a line for each request
       kafkaproto trace cut DIR        some of that as a capture file, for Wireshark
       kafkaproto report DIR           tables, rules and answers of such a trace or of a capture, as one page (needs the extra "spark")
"""


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
    if command == "report":
        return report(arguments)
    wanted_help = command in ("-h", "--help", "help")
    (sys.stdout if wanted_help else sys.stderr).write(USAGE)
    return 0 if wanted_help else 2


def report(arguments: list[str]) -> int:
    try:
        from kafkaproto.pipeline.trace.report.__main__ import main as run
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] in ("kafkaproto", "pipeline"):
            raise
        sys.stderr.write(f"kafkaproto report: {error.name} is missing: pip install 'kafkaproto[spark]'\n")
        return 3
    return run(arguments)


def broker(arguments: list[str]) -> int:
    """`kafkaproto broker` and `python -m broker`. Whoever interrupts it while it still imports sees no traceback."""
    gc.disable()  # nothing that imports leave is garbage; the broker turns it on again
    try:
        from kafkaproto.broker.server.main import main as run

        return run(arguments)
    except KeyboardInterrupt:
        return 0


def proxy(arguments: list[str]) -> int:
    """`kafkaproto proxy`. Whoever interrupts it while it still imports sees no traceback."""
    try:
        from kafkaproto.broker.server.proxy_main import main as run

        return run(arguments)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
