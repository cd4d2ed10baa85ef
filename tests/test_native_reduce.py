"""The native reductions against NumPy and against floats worked out from their definitions."""

import ctypes
import ctypes.util
import itertools
import os
import platform
import subprocess
import sys
import threading
from functools import cache
from types import ModuleType

import numpy as np
import pytest

from roundelay import RoundelayError

COUNTS = (0, 1, 3, 31, 32, 33, 257, 1000)
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
# Exponent bits, mantissa bits, whether there is an infinity.
SMALL_FLOATS = {
    "float16": (5, 10, True),
    "bfloat16": (8, 7, True),
    "float8_e4m3fn": (4, 3, False),
    "float8_e5m2": (5, 2, True),
}
FLOATS = ("float64", "float32", *SMALL_FLOATS)
COMPLEX = {"complex64": "float32", "complex128": "float64"}
TYPES = (*FLOATS, *INTEGERS, "bool", *COMPLEX)
ARITHMETIC = ("sum", "product", "min", "max", "avg", "premul_sum")
BITWISE = ("band", "bor", "bxor")


def defined(dtype: str) -> tuple[str, ...]:
    if dtype in FLOATS:
        return ARITHMETIC
    if dtype in COMPLEX:
        return ("sum", "product", "avg", "premul_sum")
    if dtype == "bool":
        return ("sum", "product", "min", "max", *BITWISE)
    return ARITHMETIC + BITWISE


CASES = [(dtype, op) for dtype in TYPES for op in defined(dtype)]


@pytest.fixture(scope="session")
def native() -> ModuleType:
    try:
        from roundelay import _native
    except ImportError as error:
        pytest.fail(
            f"the native module is not built ({error}); run `pip install .` or "
            "`pip install -e .`, and pytest without PYTHONPATH=src",
            pytrace=False,
        )
    return _native


# -- What is right, slowly ---------------------------------------------------------------------


def item_size(dtype: str) -> int:
    if dtype in SMALL_FLOATS:
        return sum(SMALL_FLOATS[dtype][:2]) // 8 + 1
    return np.dtype(dtype).itemsize


def storage(dtype: str) -> np.dtype:
    """NumPy's type for the elements; unsigned integers where it has none."""
    if dtype in SMALL_FLOATS:
        return np.dtype(f"u{item_size(dtype)}")
    return np.dtype(dtype)


@cache
def values(dtype: str) -> np.ndarray:
    """The value of every non-negative finite number by its code, and of the one after the last."""
    exponent_bits, mantissa_bits, infinity = SMALL_FLOATS[dtype]
    bias, one = 2 ** (exponent_bits - 1) - 1, 2**mantissa_bits
    last = 2 ** (exponent_bits + mantissa_bits) - (one if infinity else 1)
    exponent, mantissa = divmod(np.arange(last + 1), one)
    leading = np.where(exponent > 0, one, 0)
    return np.ldexp(leading + mantissa, np.maximum(exponent, 1) - bias - mantissa_bits)


def decode(dtype: str, codes: np.ndarray) -> np.ndarray:
    table = values(dtype)
    infinity = SMALL_FLOATS[dtype][2]
    sign_bit = 2 ** (8 * item_size(dtype) - 1)
    magnitude = codes.astype(np.int64) % sign_bit
    found = table[np.minimum(magnitude, len(table) - 2)]
    beyond = np.where((magnitude == len(table) - 1) & infinity, np.inf, np.nan)
    found = np.where(magnitude < len(table) - 1, found, beyond)
    return np.where(codes >= sign_bit, -found, found).astype(np.float32)


def encode(dtype: str, numbers: np.ndarray) -> np.ndarray:
    """The nearest code, the even one of two equally near, found by search."""
    table = values(dtype)
    infinity = SMALL_FLOATS[dtype][2]
    sign_bit = 2 ** (8 * item_size(dtype) - 1)
    size = np.abs(numbers.astype(np.float64))
    below = np.clip(np.searchsorted(table, size, side="right") - 1, 0, len(table) - 2)
    middle = (table[below] + table[below + 1]) / 2
    up = (size > middle) | ((size == middle) & (below % 2 == 1))
    code = below + up + np.where(np.signbit(numbers), sign_bit, 0)
    if infinity:
        nan = len(table) - 1 + 2 ** (SMALL_FLOATS[dtype][1] - 1)
        code = np.where(np.isnan(numbers), nan, code)
    else:  # what lies beyond the last number is NaN
        code = np.where(np.isnan(numbers) | (below + up == len(table) - 1), sign_bit - 1, code)
    return code.astype(storage(dtype))


def one_nan(numbers: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(numbers), np.array(np.nan, numbers.dtype), numbers)


def extreme(a: np.ndarray, b: np.ndarray, most: bool) -> np.ndarray:
    if a.dtype.kind != "f":
        return np.maximum(a, b) if most else np.minimum(a, b)
    first = np.signbit(b) if most else np.signbit(a)  # of two zeros
    better = (a > b) if most else (a < b)
    chosen = np.where(better | ((a == b) & first), a, b)
    return np.where(np.isnan(a) | np.isnan(b), np.nan, chosen).astype(a.dtype)


def combine(op: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if op in ("sum", "avg", "premul_sum"):
        return a + b
    if op in ("min", "max"):
        return extreme(a, b, op == "max")
    if op == "product" and a.dtype.kind == "c":
        result = np.empty_like(a)
        result.real = a.real * b.real - a.imag * b.imag
        result.imag = a.real * b.imag + a.imag * b.real
        return result
    if op == "product":
        return a * b
    return {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}[op](a, b)


def expected(op: str, dtype: str, sources: list[np.ndarray], scale: float | None) -> np.ndarray:
    if dtype == "bool":
        op = {"sum": "bor", "max": "bor", "product": "band", "min": "band"}.get(op, op)
    if dtype in COMPLEX and op != "product":
        real = [source.view(COMPLEX[dtype]) for source in sources]
        return expected(op, COMPLEX[dtype], real, scale).view(dtype)
    with np.errstate(all="ignore"):
        wide = [decode(dtype, source) if dtype in SMALL_FLOATS else source for source in sources]
        kind = wide[0].dtype.type
        if op == "premul_sum":
            wide = [source * kind(scale) for source in wide]
        total = wide[0]
        for source in wide[1:]:
            total = combine(op, total, source)
        if op == "avg" and total.dtype.kind in "iu":
            whole = total.astype(np.int64 if total.dtype.kind == "i" else np.uint64)
            divisor = whole.dtype.type(scale)
            towards = (whole < 0) & (whole % divisor != 0)
            total = (whole // divisor + towards).astype(kind)
        elif op == "avg":
            total = total / kind(scale)
        if total.dtype.kind == "c":
            return one_nan(total.view(COMPLEX[dtype])).view(dtype)
        if total.dtype.kind == "f":
            total = one_nan(total)
        return encode(dtype, total) if dtype in SMALL_FLOATS else total


def random_elements(dtype: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Any bits at all, and as many numbers of like size."""
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    found = np.frombuffer(rng.bytes(count * item_size(dtype)), storage(dtype)).copy()
    plain = rng.normal(size=2 * count) * 4
    some = rng.random(count) < 0.5
    if dtype in SMALL_FLOATS:
        found[some] = encode(dtype, plain[:count].astype(np.float32))[some]
    elif dtype in COMPLEX:
        found[some] = plain.astype(COMPLEX[dtype]).view(dtype)[some]
    elif dtype in FLOATS:
        found[some] = plain[:count][some]
    return found


def scale_for(op: str, dtype: str) -> float | None:
    if op == "avg":
        return 3
    if op == "premul_sum":
        return 3 if dtype in INTEGERS else 0.3
    return None


def as_bytes(elements: np.ndarray) -> np.ndarray:
    return elements.view(np.uint8)


def check(
    native: ModuleType, op: str, dtype: str, sources: list[np.ndarray], scale: float | None
) -> None:
    """Out of place, on every instruction set of this processor."""
    wanted = as_bytes(expected(op, dtype, sources, scale))
    for isa in native.isas():
        found = np.full_like(wanted, 0xA5)
        native.reduce(op, dtype, found, [as_bytes(s) for s in sources], scale, isa=isa)
        wrong = np.flatnonzero(found != wanted)
        if len(wrong):
            at = wrong[0] // item_size(dtype)
            place = slice(at * item_size(dtype), (at + 1) * item_size(dtype))
            pytest.fail(
                f"{isa}: element {at} of {len(sources[0])} is {bytes(found[place]).hex()}, "
                f"expected {bytes(wanted[place]).hex()}, from "
                f"{[bytes(as_bytes(s)[place]).hex() for s in sources]}"
            )


# -- The kernels -------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "op"), CASES)
def test_bits_for_every_count_and_number_of_sources(native: ModuleType, dtype: str, op: str):
    rng = np.random.default_rng(7)
    for count, n in itertools.product(COUNTS, range(1, 6)):
        sources = [random_elements(dtype, count, rng) for _ in range(n)]
        check(native, op, dtype, sources, scale_for(op, dtype))


@pytest.mark.parametrize(("dtype", "op"), CASES)
def test_in_place_at_any_offset_and_nothing_beyond(native: ModuleType, dtype: str, op: str):
    rng = np.random.default_rng(8)
    size, scale = item_size(dtype), scale_for(op, dtype)
    counts = (1, 5, 67, 8192 // size + 9)  # the last is long enough to be aligned
    for count, offset in itertools.product(counts, (0, 1, size, 5 * size + 3)):
        sources = [random_elements(dtype, count, rng) for _ in range(3)]
        wanted = bytes(as_bytes(expected(op, dtype, sources, scale)))
        for isa, place in itertools.product(native.isas(), range(3)):
            memory = [bytearray(b"\xa5" * (offset + count * size + 70)) for _ in sources]
            views = [memoryview(m)[offset : offset + count * size] for m in memory]
            for view, source in zip(views, sources, strict=True):
                view[:] = bytes(as_bytes(source))
            before = [bytes(m) for m in memory]
            native.reduce(op, dtype, views[place], views, scale, isa=isa)
            assert bytes(views[place]) == wanted, (isa, count, offset, place)
            for k in range(3):
                now = bytearray(memory[k])
                if k == place:
                    now[offset : offset + count * size] = bytes(as_bytes(sources[k]))
                assert now == before[k], "wrote where it must not"


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_every_pair_of_8_bit_floats(native: ModuleType, dtype: str, op: str):
    codes = np.arange(256, dtype=np.uint8)
    pairs = [np.repeat(codes, 256), np.tile(codes, 256)]
    check(native, op, dtype, pairs, scale_for(op, dtype))


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_16_bit_float(native: ModuleType, dtype: str, op: str):
    codes = np.arange(65536, dtype=np.uint16)
    others = np.random.default_rng(9).permutation(codes)
    for sources in ([codes], [codes, others], [codes, codes ^ 0x8000, others]):
        check(native, op, dtype, sources, scale_for(op, dtype))


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_every_code_is_rounded_from_many_float32(native: ModuleType, dtype: str):
    codes = np.arange(256 ** item_size(dtype)).astype(storage(dtype))
    # Ties of every format, values just beside them, below the least and above the largest.
    ties = [1 + 2.0**-k for k in (3, 4, 8, 9, 11, 12)]
    for scale in [*ties, 0.5, 0.25, 1 / 3, -1.7, 2.0**-20, 2.0**-140, 2.0**20, 3e38, 0.0]:
        check(native, "premul_sum", dtype, [codes], float(np.float32(scale)))


@pytest.mark.parametrize(
    ("dtype", "sources", "wanted"),
    [
        # 448 is the largest e4m3fn; 464 is half-way to what would be next, 466 is past it.
        ("float8_e4m3fn", [0x7E, 0x58], 0x7E),
        ("float8_e4m3fn", [0x7E, 0x59], 0x7F),
        ("float8_e4m3fn", [0xFE, 0xD9], 0x7F),
        ("float8_e5m2", [0x7B, 0x7B], 0x7C),
        ("float8_e5m2", [0xFB, 0xFB], 0xFC),
        ("float16", [0x7BFF, 0x7BFF], 0x7C00),
        ("float16", [0x0001, 0x0001], 0x0002),
        ("bfloat16", [0x7F80, 0xFF80], 0x7FC0),
        # 256 + 1 + 1: kept in float32 and rounded once, so nothing is lost.
        ("bfloat16", [0x4380, 0x3F80, 0x3F80], 0x4381),
    ],
)
def test_sums_worked_out_by_hand(native: ModuleType, dtype: str, sources: list, wanted: int):
    arrays = [np.full(40, source, storage(dtype)) for source in sources]
    for isa in native.isas():
        found = np.empty_like(arrays[0])
        native.reduce("sum", dtype, found, arrays, isa=isa)
        assert set(found.tolist()) == {wanted}


def test_not_a_number_is_one_and_wins(native: ModuleType):
    payloads = np.array([0x7F800001, 0xFFC12345, 0x7FFFFFFF, 0xFFFFFFFF], "u4").view("f4")
    numbers = np.array([1, -2, np.inf, -0.0], "f4")
    for isa, op in itertools.product(native.isas(), ("sum", "product", "min", "max")):
        for sources in ([payloads], [payloads, numbers], [numbers, payloads], [payloads] * 2):
            found = np.empty(4, "f4")
            native.reduce(op, "float32", found, sources, isa=isa)
            assert set(found.view("u4").tolist()) == {0x7FC00000}


def test_large_buffers_are_written_past_the_cache_and_right(native: ModuleType):
    rng = np.random.default_rng(10)
    for dtype, offset in (("float32", 4), ("float32", 1), ("uint8", 3), ("complex128", 8)):
        memory = np.zeros((1 << 24) + 256, np.uint8)
        count = ((1 << 24) + 64) // item_size(dtype) - 3
        to = memory[offset : offset + count * item_size(dtype)]
        a, b = (rng.integers(0, 100, to.nbytes // 4 + 1, "u4") for _ in range(2))
        a, b = (as_bytes(x)[: to.nbytes].view(dtype) for x in (a, b))
        for isa in native.isas():
            memory[:] = 0xA5
            native.reduce("sum", dtype, to, [a, b], isa=isa)
            assert np.array_equal(to, as_bytes(a + b))
            assert set(memory[:offset].tolist() + memory[offset + to.nbytes :].tolist()) == {0xA5}


def test_many_sources_and_one_given_twice(native: ModuleType):
    rng = np.random.default_rng(11)
    sources = [random_elements("float32", 100, rng) for _ in range(150)]
    check(native, "sum", "float32", [*sources, sources[0], sources[0]], None)


def test_any_byte_but_zero_is_true(native: ModuleType):
    truth = np.array([0, 1, 2, 128, 255], np.uint8)
    for isa in native.isas():
        found = np.empty(5, np.uint8)
        native.reduce("sum", "bool", found, [truth], isa=isa)
        assert found.tolist() == [0, 1, 1, 1, 1]
        native.reduce("bxor", "bool", found, [truth, truth[::-1].copy()], isa=isa)
        assert found.tolist() == [1, 0, 0, 0, 1]


def test_the_threads_own_rounding_does_not_matter(native: ModuleType):
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    upward = {"x86_64": 0x800, "aarch64": 0x400000}.get(platform.machine())
    if upward is None:
        pytest.skip(f"the number of upward rounding is not known for {platform.machine()}")
    one, little = np.ones(9, "f4"), np.full(9, 1e-9, "f4")
    found = np.empty_like(one)
    usual = libm.fegetround()
    assert libm.fesetround(upward) == 0
    try:
        native.reduce("sum", "float32", found, [one, little])
        still = libm.fegetround()
    finally:
        libm.fesetround(usual)
    assert still == upward
    assert np.array_equal(found, one)


# -- Scales ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_scales_at_their_limits(native: ModuleType, dtype: str):
    sources = [random_elements(dtype, 100, np.random.default_rng(12)) for _ in range(2)]
    if dtype == "bool":
        return
    for divisor in (1, 2, 200, 2**31 - 1):
        check(native, "avg", dtype, sources, divisor)
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        for factor in (int(limits.min), int(limits.max), 0, 1):
            check(native, "premul_sum", dtype, sources, factor)
    else:
        for factor in (0.0, -0.0, 1e-30, -3.4e38, np.float32(0.1), 2):
            check(native, "premul_sum", dtype, sources, factor)


# -- Bad input ---------------------------------------------------------------------------------


def read_only() -> np.ndarray:
    array = np.zeros(4, "f4")
    array.flags.writeable = False
    return array


def overlapping(shift: int) -> tuple[np.ndarray, list[np.ndarray]]:
    memory = np.zeros(100, "u1")
    return memory[10:50], [memory[10 + shift : 50 + shift]]


ROOM = np.zeros(4, "f4")
BAD = {
    "there is no op 'add'.*sum, product": ("add", "float32", ROOM, [ROOM]),
    "there is no dtype 'half'.*float16": ("sum", "half", ROOM, [ROOM]),
    "'bxor' is not defined for 'float32'.*sum": ("bxor", "float32", ROOM, [ROOM]),
    "'min' is not defined for 'complex64'": ("min", "complex64", ROOM, [ROOM]),
    "'avg' is not defined for 'bool'": ("avg", "bool", ROOM, [ROOM], 2),
    "no sources": ("sum", "float32", ROOM, []),
    "20 bytes; expected a multiple of 8, the size of one int64": (
        "sum", "int64", np.zeros(20, "u1"), [ROOM]),
    "source 1 has 12 bytes and the destination 16": ("sum", "float32", ROOM, [ROOM, ROOM[1:]]),
    "destination is read-only": ("sum", "float32", read_only(), [ROOM]),
    "destination is read-only.*bytes": ("sum", "uint8", b"1234", [b"1234"]),
    "destination is not contiguous": ("sum", "float32", np.zeros(8, "f4")[::2], [ROOM]),
    "source 0 is not contiguous": ("sum", "float32", ROOM, [np.zeros(8, "f4")[::2]]),
    "source 0 is of type list, which has no buffer": ("sum", "float32", ROOM, [[1.0]]),
    "source 0 overlaps the destination, 1 bytes apart": ("sum", "uint8", *overlapping(1)),
    "source 0 overlaps the destination, 9 bytes": ("sum", "uint8", *overlapping(-9)),
    "'sum' has scale 2; expected none": ("sum", "float32", ROOM, [ROOM], 2),
    "'avg' has no scale": ("avg", "float32", ROOM, [ROOM]),
    "'avg' has scale 0": ("avg", "float32", ROOM, [ROOM], 0),
    "'avg' has scale 2.5": ("avg", "float32", ROOM, [ROOM], 2.5),
    "'avg' has scale 2147483648": ("avg", "int64", ROOM, [ROOM], 2**31),
    "'premul_sum' has scale 128; expected a value of 'int8'": (
        "premul_sum", "int8", ROOM, [ROOM], 128),
    "'premul_sum' has scale -1; expected a value of 'uint64'": (
        "premul_sum", "uint64", ROOM, [ROOM], -1),
    "'premul_sum' has scale 0.5; expected a value of 'int32'": (
        "premul_sum", "int32", ROOM, [ROOM], 0.5),
    "'premul_sum' has scale inf; expected a finite float32": (
        "premul_sum", "bfloat16", ROOM, [ROOM], float("inf")),
    "'premul_sum' has scale 1e.300; expected a finite float32": (
        "premul_sum", "float32", ROOM, [ROOM], 1e300),
    "'premul_sum' has scale 'x'": ("premul_sum", "float64", ROOM, [ROOM], "x"),
}  # fmt: skip


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named_and_changes_nothing(native: ModuleType, message: str):
    before = ROOM.tobytes()
    with pytest.raises(RoundelayError, match=message):
        native.reduce(*BAD[message])
    assert ROOM.tobytes() == before


def test_neighbours_do_not_overlap(native: ModuleType):
    to, sources = overlapping(-10)
    native.reduce("sum", "uint8", to[10:20], [to[:10], to[20:30]])
    native.reduce("sum", "uint8", to[:0], [to[:0], sources[0][:0]])


def test_unknown_instruction_set(native: ModuleType):
    with pytest.raises(RoundelayError, match=r"no instruction set .* 'sse9'"):
        native.reduce("sum", "float32", ROOM, [ROOM], isa="sse9")


# -- The module --------------------------------------------------------------------------------


def python(code: str, **env: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


def test_the_environment_chooses_the_instruction_set(native: ModuleType):
    code = "from roundelay import _native; print(_native.isa())"
    for isa in native.isas():
        assert python(code, ROUNDELAY_ISA=isa).strip() == isa
    assert python(code, ROUNDELAY_ISA="").strip() == native.isas()[-1]
    assert "ROUNDELAY_ISA is 'mmx'; this processor can run" in python(code, ROUNDELAY_ISA="mmx")


def test_importing_roundelay_leaves_it_alone(native: ModuleType):
    code = "import sys, roundelay; print('roundelay._native' in sys.modules)"
    assert python(code).strip() == "False"


def test_large_calls_let_other_threads_run(native: ModuleType):
    source = np.zeros(1 << 22, "f4")
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        to = np.empty_like(source)
        begun.set()
        native.reduce("sum", "float32", to, [source] * 20)
        ended.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # so that only who lets go of the GIL loses it
    try:
        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
        assert not ended.is_set()
        thread.join()
    finally:
        sys.setswitchinterval(interval)
