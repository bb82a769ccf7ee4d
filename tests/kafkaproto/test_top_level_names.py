"""`import kafkaproto` imports nothing else and offers the codec's main names on use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kafkaproto

ROOT = Path(kafkaproto.__file__).resolve().parents[1]

CHECKED = """
from kafkaproto import ApiKey, Client, DecodeError, ErrorCode, build_batch, codec, read_response, request_frame
import kafkaproto

version: str = kafkaproto.__version__
client: Client = kafkaproto.Client("me")
data: bytes = request_frame(None, 1)
error: type[Exception] = DecodeError
wrong: str = codec(ApiKey.FETCH, 11).version
missing = kafkaproto.nothing
"""


def modules_after(statement: str) -> list[str]:
    """Return what a statement imports in a new interpreter."""
    program = (
        f"import sys; before = {{*sys.modules}}; {statement}; print(*sorted({{*sys.modules}} - before), sep='\\n')"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


def test_importing_package_kafkaproto_imports_none_of_its_submodules() -> None:
    assert modules_after("import kafkaproto; kafkaproto.__version__; dir(kafkaproto)") == ["kafkaproto"]


def test_importing_error_code_from_kafkaproto_loads_no_message_modules() -> None:
    loaded = modules_after("from kafkaproto import ErrorCode")
    assert "kafkaproto.error_codes" in loaded
    assert [name for name in loaded if name.startswith(("kafkaproto.messages", "kafkaproto.broker", "asyncio"))] == []


def test_names_exported_by_kafkaproto_are_the_objects_of_their_defining_modules() -> None:
    assert set(kafkaproto.__all__) <= {*dir(kafkaproto)}
    for name in kafkaproto.__all__:
        value = getattr(kafkaproto, name)
        home = getattr(value, "__module__", None)
        assert home is None or getattr(sys.modules[home], name) is value
    from kafkaproto.api import codec

    assert kafkaproto.codec is codec


def test_unknown_attribute_of_package_kafkaproto_raises_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'kafkaproto' has no attribute 'nothing'"):
        _ = kafkaproto.nothing  # type: ignore[attr-defined]
    with pytest.raises(ImportError):
        from kafkaproto import nothing  # type: ignore[attr-defined]  # noqa: F401


def test_functions_in_kafkaproto_build_a_request_frame_and_decode_a_response_frame() -> None:
    from kafkaproto.messages.metadata import MetadataRequest, MetadataResponse

    frame = kafkaproto.request_frame(MetadataRequest([]), 4, correlation_id=7, client_id="me")
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    response_bytes = kafkaproto.response_frame(MetadataResponse(cluster_id="c"), kafkaproto.ApiKey.METADATA, 4, 7)
    response = kafkaproto.read_response(kafkaproto.ApiKey.METADATA, 4, response_bytes[4:])
    assert (response.correlation_id, response.message.cluster_id) == (7, "c")


@pytest.mark.slow
def test_mypy_reports_a_wrong_type_and_a_missing_attribute_of_package_kafkaproto(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CHECKED)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    environment = {"MYPYPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    command[3:3] = ["--config-file", "", "--ignore-missing-imports", "--follow-imports=silent"]
    completed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    errors = [line for line in completed.stdout.splitlines() if ": error: " in line]
    assert [line.partition(":")[2].partition(":")[0] for line in errors] == ["9", "10"], completed.stdout
