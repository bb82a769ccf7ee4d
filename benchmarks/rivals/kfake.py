"""Builds kfake, the test broker of franz-go, with Go on first use. Benchmarks and tests use the same program."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.rivals.jars import cache_folder

KFAKE = "github.com/twmb/franz-go/pkg/kfake@v0.0.0-20260804154521-adb3a18abe14"
MAIN = Path(__file__).with_name("kfake.go")


def built() -> str:
    """Return the path of the program kfake. If kfake is not in the project's folder for downloads (`cache_folder`), Go builds it there.

    Raises FileNotFoundError if Go is not installed, and CalledProcessError if the build fails.
    """
    folder = cache_folder() / "rivals" / KFAKE.rpartition("-")[2]
    program = folder / "kfake"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        caches = {
            "GOPATH": str(cache_folder() / "go"),
            "GOCACHE": str(cache_folder() / "go-build"),
            "GOFLAGS": "-modcacherw",
        }
        go: dict[str, Any] = {"cwd": folder, "check": True, "capture_output": True, "env": {**os.environ, **caches}}
        shutil.copy(MAIN, folder / "main.go")
        if not (folder / "go.mod").exists():
            subprocess.run(["go", "mod", "init", "rival"], **go)
        for step in (["get", KFAKE], ["build", "-o", "kfake", "."]):
            subprocess.run(["go", *step], **go)
    return str(program)
