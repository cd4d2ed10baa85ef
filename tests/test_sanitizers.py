"""The native module under the address and undefined-behaviour sanitizers of GCC."""

import os
import shutil
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest
from sanitized import library, run

ROOT = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(5400),
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python with all that this one has, and a native module built with sanitizers."""
    home = tmp_path_factory.mktemp("sanitized")
    venv.create(home)
    python = home / "bin/python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run([python, "-c", code]).strip())
    # Only its paths: what is installed for editing there would hide the module built here.
    site.joinpath("others.pth").write_text("\n".join(p for p in sys.path if "-packages" in p))
    tools = find_spec("scikit_build_core") and find_spec("nanobind")
    run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps",
         *(["--no-build-isolation"] if tools else []),
         "-C", "cmake.define.ROUNDELAY_SANITIZE=address,undefined", ROOT],
        timeout=1800, env=os.environ | {"CXX": "g++"})  # fmt: skip
    return python


# Leaks are not looked for: Python itself leaves memory to the system when it ends. What is freed
# is kept for a short while only, since up to nine ranks do so at once. How fast an error comes is
# for a module at full speed.
@pytest.mark.parametrize("tests", ["test_native_reduce.py", "test_engine.py"])
def test_the_tests_find_nothing(python, tests, monkeypatch):
    monkeypatch.setenv("CXX", "g++")
    runtime = [library(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so")]
    environ = os.environ | {
        "LD_PRELOAD": " ".join(runtime),
        "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=8",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": "",
    }
    run([python, "-m", "pytest", "-p", "no:cacheprovider", "--timeout", "1200",
         "-k", "not within_a_second", ROOT / "tests" / tests],
        timeout=5000, env=environ, cwd=ROOT)  # fmt: skip
