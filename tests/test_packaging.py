"""The installed package: one top-level name, next to other packages called `broker` and `pipeline`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from email.policy import default
from pathlib import Path

import pytest

from tests.support.pipeline.recorded import traffic, write
from tests.support.programs import program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parent.parent
NOT_COPIED = (".git", ".venv", ".cache", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")
DECOYS = ("broker", "pipeline")
SUITE = """
import broker, pipeline
import pytest

@pytest.mark.kafka(brokers=2, topics={"orders": 3})
def test_orders(kafka_cluster):
    kafka_cluster.produce("orders", ["a", "b"])
    assert len(kafka_cluster.records("orders")) == 2
    assert broker.OWNER == pipeline.OWNER == "somebody else"
"""
PYTHON_3 = "Programming Language :: Python :: 3."
TYPED = """
from kafkaproto.broker.cluster import Cluster
from kafkaproto.conformance.subject import profiles
from kafkaproto.pipeline.kafka_py.options import source_settings
from kafkaproto.pytest_plugin import MARKER
from kafkaproto.testing import cluster

reveal_type(Cluster(1).nodes)
reveal_type(profiles())
reveal_type(source_settings({}, streaming=False).topics)
reveal_type(MARKER)
with cluster() as c:
    reveal_type(c.bootstrap)
"""
REVEALED = ["kafkaproto.broker.nodes.Nodes", "list[str]", "tuple[str, ...]", "str", "str"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the checkout, so that building neither changes it nor uses files of an earlier build."""
    copy = tmp_path_factory.mktemp("checkout") / "kafkaproto"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    return copy


def built(source: Path, target: Path, kind: str) -> Path:
    """Build a wheel or an sdist of the folder `source` and return its path."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--outdir", str(target), str(source)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout[-3000:] + completed.stderr[-3000:]
    [path] = target.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(checkout, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def unpacked_sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    shutil.unpack_archive(built(checkout, folder / "built", "sdist"), folder / "unpacked")
    [source] = (folder / "unpacked").iterdir()
    return source


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    [text] = [data for name, data in contents(wheel).items() if name.endswith(".dist-info/METADATA")]
    return message_from_bytes(text, policy=default)


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheel and the decoys. Third-party packages of this run are behind them on the path."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    for name in DECOYS:
        (site / name).mkdir()
        (site / name / "__init__.py").write_text('OWNER = "somebody else"\n')
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")  # its .pth files are not read
    return python


def run(python: Path, folder: Path, *arguments: str, **options: str) -> str:
    """Run the environment's Python in an empty folder and return its output."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "COV"))}
    environment = inherited | {"PATH": f"{python.parent}:{inherited['PATH']}"} | options
    completed = subprocess.run(
        [python, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def contents(archive: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_wheel_has_the_single_top_level_package_kafkaproto_with_every_module(wheel: Path) -> None:
    names = contents(wheel).keys()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"kafkaproto"}
    ours = {f"kafkaproto/{path.relative_to(ROOT)}" for folder in DECOYS for path in (ROOT / folder).rglob("*.py")} | {
        str(path.relative_to(ROOT)) for path in (ROOT / "kafkaproto").rglob("*.py")
    }
    assert ours <= names
    assert {"kafkaproto/py.typed", "kafkaproto/pipeline/trace/report/page.html.j2"} <= names
    profiles = {str(path.relative_to(ROOT)) for path in (ROOT / "kafkaproto/conformance/profiles").iterdir()}
    assert profiles and profiles <= names


def test_wheel_built_from_the_sdist_equals_the_wheel_of_the_checkout(
    wheel: Path, unpacked_sdist: Path, tmp_path: Path
) -> None:
    assert contents(built(unpacked_sdist, tmp_path / "wheel", "wheel")) == contents(wheel)


def test_sdist_contains_every_file_of_the_repository(unpacked_sdist: Path) -> None:
    """The tests need all files, because `make test` also runs in an unpacked source distribution."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(listed) > 500
    assert [name for name in listed if not (unpacked_sdist / name).exists()] == []


def test_package_metadata_lists_python_versions_and_extras_but_no_author(metadata: Message) -> None:
    versions = [
        classifier.rpartition(" ")[2] for classifier in metadata.get_all("Classifier", []) if PYTHON_3 in classifier
    ]
    assert versions == ["3.11", "3.12", "3.13"]
    assert f">={versions[0]}" == metadata["Requires-Python"]
    assert {"spark", "demo", "conformance"} <= {*metadata.get_all("Provides-Extra", [])}
    assert metadata["Keywords"] and metadata["Summary"] and metadata["License-Expression"] == "Apache-2.0"
    assert [name for name in ("Author", "Author-email", "Maintainer", "Maintainer-email") if name in metadata] == []


def test_package_description_contains_no_relative_link(metadata: Message) -> None:
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert [link for link in re.findall(r"\]\(([^)]*)\)", text) if not link.startswith(("https://", "#"))] == []
    assert "def test_a_client_over_its_quota_is_throttled(kafka_cluster):" in text


def test_readme_shows_the_installation_first_and_mentions_only_existing_extras(metadata: Message) -> None:
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"pip install '?((?:\.|kafkaproto)[^\s'`]*)", text)
    assert commands[0] == "."
    assert text.index("pip install .") < text.index("```python")
    extras = {extra for command in commands for extra in re.findall(r"[\w-]+", command.partition("[")[2])}
    assert {"spark", "demo", "conformance"} <= extras <= {*metadata.get_all("Provides-Extra", [])}


def test_mypy_reads_the_types_of_the_installed_package_and_reports_no_errors(python: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TYPED)
    command = ["-m", "mypy", "--strict", "--python-executable", str(python), "--cache-dir", str(tmp_path / "cache")]
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    completed = subprocess.run(
        [sys.executable, *command, "program.py"],
        cwd=tmp_path,
        env=inherited,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert re.findall(r'Revealed type is "([^"]+)"', completed.stdout) == REVEALED
    assert completed.returncode == 0, completed.stdout


def test_installed_package_is_imported_from_the_wheel_and_not_from_the_checkout(python: Path, tmp_path: Path) -> None:
    output = run(python, tmp_path, "-c", "import kafkaproto, broker; print(kafkaproto.__file__, broker.OWNER)")
    assert output.startswith(str(python.parent.parent))
    assert output.endswith("somebody else\n")


def test_user_packages_named_broker_and_pipeline_do_not_break_the_cluster_fixture(python: Path, tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(SUITE)
    output = run(python, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "1 passed" in output


def test_installed_command_starts_and_stops_a_broker(python: Path, tmp_path: Path) -> None:
    command = [str(python.with_name("kafkaproto")), "broker", "--port", "0"]
    with program(command, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("127.0.0.1:")
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


def test_conformance_suite_runs_on_the_installed_broker(python: Path, tmp_path: Path) -> None:
    """The suite runs in a folder whose pytest settings and conftest would break it."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError\n")
    script = str(python.with_name("kafkaproto"))
    settings = run(python, tmp_path, script, "conformance", "--settings", "default").splitlines()
    options = [f"-c{setting}" for setting in (*settings, *(f"{i}.broker.rack=r{i}" for i in range(3)))]
    command = [script, "broker", "--brokers", "3", "--port", "0", "--semantics", "kafka", *options]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            output = run(
                python,
                tmp_path,
                script,
                "conformance",
                "--bootstrap",
                address,
                "-k",
                "test_fetch_sizes or quota_levels",
            )
        finally:
            process.terminate()
    passed = re.search(rf"^{re.escape(address)}: (\d+) ok, 2 not prepared$", output, re.MULTILINE)
    assert passed and int(passed[1]) > 20, output
    assert "| F-7" in output and output.count(": not prepared: needs Kafka 4.0 or later") == 1


def test_installed_command_builds_tables_of_a_trace(python: Path, tmp_path: Path) -> None:
    write(tmp_path / "trace", traffic())
    script = str(python.with_name("kafkaproto"))
    run(python, tmp_path, script, "tables", "trace", "out", "--without-spark")
    count = "import pyarrow.parquet as p; print(p.read_table('out/requests').num_rows)"
    assert int(run(python, tmp_path, "-c", count)) > 3
    assert run(python, tmp_path, script, "pack", "kafkaproto.zip").startswith("kafkaproto.zip: ")
    program = "import kafkaproto.pipeline.trace.tables as t; print(t.__file__)"
    assert "kafkaproto.zip" in run(python, tmp_path, "-c", program, PYTHONPATH="kafkaproto.zip")


def test_demo_of_an_installed_package_writes_its_trace_into_the_current_folder(python: Path, tmp_path: Path) -> None:
    arguments = ("-m", "kafkaproto.pipeline.demo", "--without-spark", "--only", "limits")
    assert "DIFFERS" not in run(python, tmp_path, *arguments)
    assert list((tmp_path / "build" / "demo" / "trace").glob("*.kptrace"))


def test_version_is_equal_in_wheel_name_imported_package_and_version_option(
    wheel: Path, python: Path, tmp_path: Path
) -> None:
    version = run(python, tmp_path, "-c", "import kafkaproto; print(kafkaproto.__version__)").strip()
    assert wheel.name.startswith(f"kafkaproto-{version}-")
    assert run(python, tmp_path, "-m", "kafkaproto.cli", "--version") == f"kafkaproto {version}\n"


def test_documentation_path_that_an_installed_broker_logs_at_start_exists(python: Path, tmp_path: Path) -> None:
    program = "from kafkaproto.broker.server.start_report import documentation; print(documentation())"
    page = Path(run(python, tmp_path, "-c", program).strip())
    assert page.is_relative_to(python.parent.parent.resolve()) and page.name == "README.md"
    assert page.read_text() == (ROOT / "README.md").read_text()
