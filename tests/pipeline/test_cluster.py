"""The commands of docs/how-to/report-in-ci.md for a Spark cluster, run on workers whose Python has five packages.

Traces and captures become tables that equal those built without Spark.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from kafkaproto.pipeline import pack
from kafkaproto.pipeline.session import cache_folder
from kafkaproto.pipeline.trace import tables as job
from kafkaproto.pipeline.trace.schema import TABLES
from tests.support.pipeline.exchanges import add_exchanges, fetched, named, versions
from tests.support.pipeline.recorded import traffic, write
from tests.support.pipeline.tables import rows
from tests.support.pipeline.wire import Wire

ROOT = Path(__file__).resolve().parents[2]
MASTER = "local-cluster[2,1,1024]"
PACKAGES = ("pyspark", "pyarrow", "construct", "crc32c", "cramjam")
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""JVM options of the driver and two executors."""
SMALL = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}
"""Settings for few rows, for which planning costs more than it saves."""
LOCAL_ONLY = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
"""Environment variables that would override the command."""


def executors_python() -> Path:
    """Return the Python of an environment with only these packages. The environment is created once and renamed into place."""
    requirements = [f"{name}=={metadata.version(name)}" for name in PACKAGES]
    name = "-".join(
        [
            f"{sys.version_info[0]}.{sys.version_info[1]}",
            *(requirement.replace("==", "-") for requirement in requirements),
        ]
    )
    folder = cache_folder() / "executors" / name
    if not folder.is_dir():
        making = folder.with_name(f".{name}.{os.getpid()}")
        making.parent.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", making], check=True)
            pip = [making / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *requirements], check=True)
            making.rename(folder)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return folder / "bin" / "python"


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield the environment for a Spark installation made of links: workers write next to the jars, and those files go with the test."""
    import pyspark

    home = tmp_path / "spark"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name not in ("work", "conf"):
            home.joinpath(entry.name).symlink_to(entry)
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in SMALL.items()))
    inherited = {name: value for name, value in os.environ.items() if name not in LOCAL_ONLY}
    yield inherited | {
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(home / "conf"),
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": QUICK_START,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "MASTER": MASTER,
    }
    shutil.rmtree(home)


def instructions() -> str:
    section = (ROOT / "docs" / "how-to" / "report-in-ci.md").read_text().partition("\n## On a Spark cluster\n")[2]
    block = re.search(r"```bash\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return block[1]


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_documented_spark_cluster_commands_build_the_same_tables_as_plain_python(
    environment: dict[str, str], tmp_path: Path
) -> None:
    trace, out, python = tmp_path / "trace", tmp_path / "out", executors_python()
    write(trace, traffic())
    wire = Wire(4)
    add_exchanges(wire.connect(40_000), versions(1), fetched(2))
    add_exchanges(wire.connect(40_001), named(1))
    wire.write(trace / "late.pcap")
    alone = subprocess.run(
        [python, "-c", "import kafkaproto"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "No module named 'kafkaproto'" in alone.stderr

    commands = instructions().replace("kafkaproto.zip", str(tmp_path / "kafkaproto.zip"))
    variables = environment | {"PYTHON": str(python), "TRACE": str(trace), "OUT": str(out)}
    completed = subprocess.run(
        ["bash", "-euc", commands], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stdout[-3000:] + completed.stderr[-3000:]
    assert len(list((tmp_path / "spark" / "work").glob("app-*/*"))) == 2
    assert (out / "report.html").is_file() and "rules broken" in completed.stdout

    job.build(trace, tmp_path / "other", job.without_spark)
    for table in TABLES:
        assert rows(out, table) == rows(tmp_path / "other", table)


def test_pack_command_writes_an_importable_zip_that_contains_only_kafkaproto(tmp_path: Path) -> None:
    archive = tmp_path / "k.zip"
    names = pack.pack(archive)
    assert {name.partition("/")[0] for name in names} == {"kafkaproto"}
    assert {"kafkaproto/broker/quota/windows.py", "kafkaproto/pipeline/trace/report/page.html.j2"} <= set(names)
    program = (
        "import kafkaproto.broker as b, kafkaproto.pipeline.trace.tables, kafkaproto.pipeline.trace.answers.what_if as w;"
        "print(w.__file__, b.__file__)"
    )
    command = [
        sys.executable,
        "-S",
        "-c",
        f"import sys; sys.path[:0] = [{str(archive)!r}, {str(Path(job.pa.__file__).parents[1])!r}]; {program}",
    ]
    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert completed.stdout.count(str(archive)) == 2, completed.stderr


def test_pack_command_prints_an_error_for_a_zip_path_in_a_missing_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pack.main([str(tmp_path / "none" / "k.zip")]) == 2
    assert "none/k.zip: No such file or directory" in capsys.readouterr().err


def test_pack_command_with_option_main_prints_the_path_of_the_file_cli_py(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert pack.main(["--main"]) == 0
    program = Path(capsys.readouterr().out.strip())
    assert program.name == "cli.py" and program.read_text().startswith('"""The script `kafkaproto`')
