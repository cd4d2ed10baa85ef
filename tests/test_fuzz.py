"""What comes over a link, made up by libFuzzer: native/fuzz/link.cpp."""

import shutil
import subprocess

import pytest
from sanitized import NATIVE, run

SECONDS = 5
LONG = 1800
FLAGS = ["-std=c++20", "-O1", "-g1", "-pthread", f"-I{NATIVE}", "-fno-sanitize-recover=all",
         "-fsanitize=fuzzer,address,undefined"]  # fmt: skip
ENGINE = ("link", "words", "checksum", "sockets")


def has_fuzzer():
    """Whether there is a clang++ with libFuzzer and the sanitizers."""
    clang = shutil.which("clang++")
    code = 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }'
    command = [clang, *FLAGS, "-x", "c++", "-", "-o", "/dev/null"]
    return (
        clang is not None
        and not subprocess.run(command, input=code, text=True, capture_output=True).returncode
    )


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    if not has_fuzzer():
        pytest.skip("there is no clang++ with libFuzzer")
    program = tmp_path_factory.mktemp("fuzz") / "fuzz_link"
    sources = [NATIVE / "fuzz/link.cpp", *(NATIVE / f"engine/{name}.cpp" for name in ENGINE)]
    run(["clang++", *FLAGS, *sources, "-o", program])
    return program


def fuzz(program, folder, seconds):
    """Run it for so long, from the corpus on; inputs that it finds stay in the folder."""
    corpus = folder / "corpus"
    shutil.copytree(NATIVE / "fuzz/corpus", corpus)
    run([program, f"-max_total_time={seconds}", "-max_len=8192", "-timeout=10",
         "-rss_limit_mb=1024", f"-artifact_prefix={folder}/", corpus],
        timeout=seconds + 100)  # fmt: skip


def test_a_link_bears_what_comes(fuzzer, tmp_path):
    fuzz(fuzzer, tmp_path, SECONDS)


@pytest.mark.soak
@pytest.mark.timeout(LONG + 200)
def test_a_link_bears_what_comes_for_long(fuzzer, tmp_path):
    fuzz(fuzzer, tmp_path, LONG)
