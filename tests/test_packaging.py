"""The package as strangers install it: one top-level name, beside other people's packages called `broker` and `pipeline`."""

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
from pathlib import Path

import pytest

from tests.support.pipeline.recorded import traffic, write

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


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, so that building leaves nothing in it and takes nothing left from an earlier build."""
    copy = tmp_path_factory.mktemp("checkout") / "kafkaproto"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    return copy


def built(source: Path, target: Path, kind: str) -> Path:
    """Build a wheel or an sdist of the folder `source` and return its path."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--outdir", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    [path] = target.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(checkout, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and the decoys; packages of others are those of this run, behind them on the path."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    for name in DECOYS:
        (site / name).mkdir()
        (site / name / "__init__.py").write_text('OWNER = "somebody else"\n')
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")  # its own .pth files are not read
    return python


def run(python: Path, folder: Path, *arguments: str, **options: str) -> str:
    """Run the environment's Python in an empty folder and return its output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "COV"))}
    environment = kept | {"PATH": f"{python.parent}:{kept['PATH']}"} | options
    done = subprocess.run(
        [python, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def contents(archive: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_a_wheel_has_one_top_level_name_and_every_module(wheel: Path) -> None:
    names = contents(wheel).keys()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"kafkaproto"}
    ours = {f"kafkaproto/{path.relative_to(ROOT)}" for folder in DECOYS for path in (ROOT / folder).rglob("*.py")} | {
        str(path.relative_to(ROOT)) for path in (ROOT / "kafkaproto").rglob("*.py")
    }
    assert ours <= names
    assert {"kafkaproto/py.typed", "kafkaproto/pipeline/trace/report/page.html.j2"} <= names
    profiles = {str(path.relative_to(ROOT)) for path in (ROOT / "kafkaproto/conformance/profiles").iterdir()}
    assert profiles and profiles <= names


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_checkout(wheel: Path, checkout: Path, tmp_path: Path) -> None:
    sdist = built(checkout, tmp_path / "sdist", "sdist")
    shutil.unpack_archive(sdist, tmp_path / "unpacked")
    [source] = (tmp_path / "unpacked").iterdir()
    assert contents(built(source, tmp_path / "wheel", "wheel")) == contents(wheel)


def test_the_package_is_loaded_from_the_wheel(python: Path, tmp_path: Path) -> None:
    said = run(python, tmp_path, "-c", "import kafkaproto, broker; print(kafkaproto.__file__, broker.OWNER)")
    assert said.startswith(str(python.parent.parent))
    assert said.endswith("somebody else\n")


def test_a_fixture_works_beside_packages_called_broker_and_pipeline(python: Path, tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(SUITE)
    said = run(python, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "1 passed" in said


def test_the_command_starts_a_broker_and_ends_it(python: Path, tmp_path: Path) -> None:
    command = [str(python.with_name("kafkaproto")), "broker", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("127.0.0.1:")
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


def test_the_conformance_suite_runs_on_the_installed_broker(python: Path, tmp_path: Path) -> None:
    """From a folder whose own pytest settings and conftest would break it."""
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
            said = run(
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
    passed = re.search(rf"^{re.escape(address)}: (\d+) ok$", said, re.MULTILINE)
    assert passed and int(passed[1]) > 20, said
    assert "| F-7" in said


def test_the_command_makes_tables_of_a_trace(python: Path, tmp_path: Path) -> None:
    write(tmp_path / "trace", traffic())
    script = str(python.with_name("kafkaproto"))
    run(python, tmp_path, script, "tables", "trace", "out", "--without-spark")
    count = "import pyarrow.parquet as p; print(p.read_table('out/requests').num_rows)"
    assert int(run(python, tmp_path, "-c", count)) > 3
    assert run(python, tmp_path, script, "pack", "kafkaproto.zip").startswith("kafkaproto.zip: ")
    program = "import kafkaproto.pipeline.trace.tables as t; print(t.__file__)"
    assert "kafkaproto.zip" in run(python, tmp_path, "-c", program, PYTHONPATH="kafkaproto.zip")


def test_the_demo_starts_the_installed_broker_and_writes_below_the_current_folder(python: Path, tmp_path: Path) -> None:
    arguments = ("-m", "kafkaproto.pipeline.demo", "--without-spark", "--only", "limits")
    assert "DIFFERS" not in run(python, tmp_path, *arguments)
    assert list((tmp_path / "build" / "demo" / "trace").glob("*.kptrace"))
