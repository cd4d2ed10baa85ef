"""Building native code with the compiler's sanitizers."""

import os
import platform
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NATIVE = Path(__file__).parents[1] / "native"
# Sources compiled for a processor family: native/reduce/CMakeLists.txt.
FAMILIES = {
    "avx2": ["-mavx2", "-mf16c"],
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mf16c"],
}


def compiler() -> str | None:
    """CXX, or the first that there is of GCC and Clang."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "clang++"]
    return next((found for name in names if (found := shutil.which(name))), None)


def library(name: str) -> str:
    """Where the compiler keeps a library; the bare name where it has none."""
    asked = [compiler(), f"-print-file-name={name}"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def why_not(sanitizer: str) -> str | None:
    """Why nothing can be built with a sanitizer."""
    if compiler() is None:
        return "there is no C++ compiler"
    short = {"thread": "tsan", "address": "asan"}[sanitizer]
    names = (f"lib{short}.so", f"libclang_rt.{short}-{platform.machine()}.a")
    if not any(Path(library(name)).is_absolute() for name in names):
        return f"the compiler {compiler()} has no lib{short}"
    return None


def build(folder: Path, sanitizers: str) -> Path:
    """The program `engine_threads`, as its CMake target builds it, without CMake."""
    if platform.machine() in ("x86_64", "AMD64"):
        families = {"baseline": [], **FAMILIES}
    else:
        families = {"neon" if platform.machine() in ("aarch64", "arm64") else "baseline": []}
    sources = {NATIVE / f"reduce/kernels_{name}.cpp": flags for name, flags in families.items()}
    sources |= {path: [] for path in [NATIVE / "reduce/dispatch.cpp", *NATIVE.glob("engine/*.cpp")]}
    common = [compiler(), "-std=c++20", "-O1", "-g1", "-ffp-contract=off", "-pthread"]
    common += [f"-I{NATIVE}"]
    common += [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"] if sanitizers else []

    def compiled(path: Path) -> Path:
        made = folder / f"{path.stem}.o"
        run([*common, *sources[path], "-c", path, "-o", made])
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, sources))
    run([*common, *objects, "-o", folder / "engine_threads"])
    return folder / "engine_threads"


def run(command: list[object], timeout: float = 600, **options: object) -> str:
    """What it prints; it must end well."""
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=timeout, **options,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stdout[-8000:])
    return done.stdout
