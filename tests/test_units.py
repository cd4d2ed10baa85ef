"""Sizes, rates, times and counts: what is understood, what is refused, what is printed."""

import contextlib
import doctest
import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roundelay import units
from roundelay.errors import RoundelayError
from roundelay.units import (
    Rate,
    UnitError,
    format_rate,
    format_size,
    format_time,
    parse_counts,
    parse_rate,
    parse_size,
    parse_time,
)

PARSERS = (parse_size, parse_rate, parse_time, parse_counts)


def test_docstring_examples() -> None:
    """The examples in the documentation hold, and there are some."""
    failed, attempted = doctest.testmod(units)
    assert failed == 0
    assert attempted >= 8


def test_unit_error_is_bad_input() -> None:
    """A caller that catches bad input catches these."""
    assert issubclass(UnitError, RoundelayError)
    assert issubclass(RoundelayError, ValueError)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("4096B", 4096),
        (" 4096\tB\n", 4096),
        ("8K", 8 << 10),
        ("8k", 8 << 10),
        ("64M", 64 << 20),
        ("64m", 64 << 20),
        ("1G", 1 << 30),
        ("2t", 2 << 40),
        ("8KB", 8_000),
        ("8kB", 8_000),
        ("64 MB", 64_000_000),
        ("1GB", 10**9),
        ("1TB", 10**12),
        ("1KiB", 1 << 10),
        ("1 MiB", 1 << 20),
        ("1 Gi", 1 << 30),
        ("1TiB", 1 << 40),
        ("1.5K", 1536),
        (".5K", 512),
        ("0.3KB", 300),
        ("1e6", 10**6),
        ("1.5E3 KB", 1_500_000),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_parse_size(text: str, size: int) -> None:
    """Bare letters and KiB are powers of 1024, KB is a power of 1000."""
    parsed = parse_size(text)
    assert parsed == size
    assert type(parsed) is int


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("junk", "is not a number"),
        ("nan", "is not a number"),
        ("inf", "is not a number"),
        ("-inf", "is not a number"),
        ("MB", "is not a number"),
        ("1e400", "unknown unit"),
        ("9" * 6000, "is not a number"),
        ("1,024", "unknown unit"),
        ("1_024", "unknown unit"),
        ("1.2.3", "unknown unit"),
        ("1.K", "unknown unit"),
        ("8 16", "is not a number"),
        ("٣", "is not a number"),
        ("3٣", "unknown unit"),
        ("8 \N{KELVIN SIGN}B", "unknown unit"),
        ("8 XB", "unknown unit"),
        ("8 MB duplex", "unknown unit"),
        ("-1", "is negative"),
        ("-1.5K", "is negative"),
        ("0.3B", "is not a whole number of bytes"),
        ("0.3", "is not a whole number of bytes"),
        ("1.0001K", "is not a whole number of bytes"),
        ("9223372036854775808", "below 2^63"),
        ("1e99T", "below 2^63"),
        ("8 Gb", "looks like bits (bytes take a capital B, as in 8GB"),
        ("64kb", "looks like bits"),
        ("1 Mbit", "looks like bits"),
        ("1 Gibit", "looks like bits"),
        ("8 bits", "looks like bits"),
        ("12 GB/s", "is a rate"),
        ("12 GB/s duplex", "is a rate"),
        ("400Gbps", "is a rate"),
        ("3 us", "is a time"),
        ("3 min", "is a time"),
    ],
)
def test_parse_size_refuses(text: str, problem: str) -> None:
    """Each refusal says what was found, what was expected and what to try."""
    with pytest.raises(UnitError) as caught:
        parse_size(text)
    message = str(caught.value)
    assert problem in message
    assert message.endswith("; a size was expected, such as 64MiB, 64M or 4096")
    assert message.startswith(repr(text)[:99])
    assert len(message) < 300


def test_error_reads_as_a_sentence() -> None:
    """One message in full, to fix the wording."""
    with pytest.raises(UnitError) as caught:
        parse_size("12 GB/s")
    expected = "'12 GB/s' is a rate; a size was expected, such as 64MiB, 64M or 4096"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("400 Gb/s", Rate(50e9, "oneway")),
        ("400Gbps", Rate(50e9, "oneway")),
        ("400 gbps", Rate(50e9, "oneway")),
        ("400 Gbit/s", Rate(50e9, "oneway")),
        ("400 gbit/s", Rate(50e9, "oneway")),
        ("400 GBIT/S", Rate(50e9, "oneway")),
        ("400 Gb / s", Rate(50e9, "oneway")),
        ("8 bps", Rate(1.0, "oneway")),
        ("800 Gb/s duplex", Rate(100e9, "duplex")),
        ("900 GB/s", Rate(900e9)),
        ("900 GBps", Rate(900e9)),
        ("900 gB/s", Rate(900e9)),
        ("900 GB/s duplex", Rate(900e9, "duplex")),
        ("900 GB/s  Both  Directions", Rate(900e9, "duplex")),
        ("450 GB/s oneway", Rate(450e9, "oneway")),
        ("450 GB/s one-way", Rate(450e9, "oneway")),
        ("450GB/s one way", Rate(450e9, "oneway")),
        ("2 GiB/s", Rate(2.0 * 2**30)),
        ("5 MB/s", Rate(5e6)),
        ("5 kB/s", Rate(5e3)),
        ("1.5 TB/s", Rate(1.5e12)),
        ("7 B/s", Rate(7.0)),
    ],
)
def test_parse_rate(text: str, rate: Rate) -> None:
    """Bits have a direction by convention, bytes only if it is said."""
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("fast", "is not a number"),
        ("nan GB/s", "is not a number"),
        ("900", "has no unit"),
        ("50 GB", "is a size"),
        ("400 Gb", "looks like bits"),
        ("3us", "is a time"),
        ("-5 GB/s", "is negative"),
        ("0 GB/s", "is zero"),
        ("900 gb/s", "is an ambiguous rate"),
        ("900 gb/s duplex", "is an ambiguous rate"),
        ("900 kb/s", "is an ambiguous rate"),
        ("900 b/s", "is an ambiguous rate"),
        ("900 gib/s", "is an ambiguous rate"),
        ("900 GB/S", "is an ambiguous rate"),
        ("900 GBPS", "is an ambiguous rate"),
        ("400 Gib/s", "has a binary prefix"),
        ("400 Gibit/s", "has a binary prefix"),
        ("400 gibps", "has a binary prefix"),
        ("64 GT/s", "unknown unit"),
        ("12 G/s", "unknown unit"),
        ("900 GB/s sideways", "unknown unit"),
        ("900 GB/s oneway duplex", "unknown unit"),
        ("900 GB/sduplex", "unknown unit"),
    ],
)
def test_parse_rate_refuses(text: str, problem: str) -> None:
    """Bits and bytes are never guessed."""
    with pytest.raises(UnitError) as caught:
        parse_rate(text)
    assert problem in str(caught.value)
    assert "; a rate was expected, such as 400Gb/s" in str(caught.value)


def test_rate_directions() -> None:
    """Duplex counts both directions, and an unsaid direction is never assumed."""
    assert parse_rate("900 GB/s duplex").oneway == 450e9
    assert parse_rate("900 GB/s duplex").duplex == 900e9
    assert parse_rate("400 Gb/s").oneway == 50e9
    assert parse_rate("400 Gb/s").duplex == 100e9
    unsaid = parse_rate("900 GB/s")
    assert unsaid.direction is None
    with pytest.raises(UnitError, match=r"'900 GB/s' has no direction; .*'oneway' or 'duplex'"):
        _ = unsaid.oneway
    with pytest.raises(UnitError, match="'oneway' or 'duplex'"):
        _ = unsaid.duplex


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_rate_refuses_impossible_values(value: float) -> None:
    """A rate is finite and not negative."""
    with pytest.raises(UnitError, match="negative or not finite"):
        Rate(value)


def test_rate_refuses_unknown_direction() -> None:
    """A misspelt direction is caught where the rate is made."""
    with pytest.raises(UnitError, match="'one-way' is no direction; use 'oneway', 'duplex'"):
        Rate(1.0, "one-way")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3us", 3e-6),
        ("3 \u00b5s", 3e-6),
        ("3 \u03bcs", 3e-6),
        ("1.5 ms", 1.5e-3),
        ("20 ns", 20e-9),
        ("7 ps", 7e-12),
        ("2 s", 2.0),
        ("1 min", 60.0),
        ("30m", 1800.0),
        ("1.5h", 5400.0),
        ("2 d", 172800.0),
        ("0s", 0.0),
    ],
)
def test_parse_time(text: str, seconds: float) -> None:
    """The nearest float is given, with either sign for micro."""
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("soon", "is not a number"),
        ("3", "has no unit"),
        ("-3us", "is negative"),
        ("3 M", "is a size"),
        ("3 MB", "is a size"),
        ("3 H", "unknown unit"),
        ("3 GB/s", "is a rate"),
        ("3 US", "unknown unit"),
        ("3 Ms", "unknown unit"),
        ("3 u s", "unknown unit"),
    ],
)
def test_parse_time_refuses(text: str, problem: str) -> None:
    """A bare number is never taken as a time."""
    with pytest.raises(UnitError) as caught:
        parse_time(text)
    assert problem in str(caught.value)
    assert str(caught.value).endswith("; a time was expected, such as 3us, 1.5ms, 2s, 30m or 1.5h")


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("8", (8,)),
        ("1-33", tuple(range(1, 34))),
        ("8,16,1024", (8, 16, 1024)),
        ("1-4,8", (1, 2, 3, 4, 8)),
        (" 8 , 1 - 3, 2-4 ", (1, 2, 3, 4, 8)),
        ("5-5", (5,)),
        ("999999999999999999", (999999999999999999,)),
        ("1-100000,1-100000", tuple(range(1, 100_001))),
    ],
)
def test_parse_counts(text: str, counts: tuple[int, ...]) -> None:
    """Counts come out sorted and unique."""
    assert parse_counts(text) == counts


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is no count or range"),
        ("8,", "has ''"),
        ("0", "has '0'"),
        ("0-4", "has '0-4'"),
        ("-3", "has '-3'"),
        ("1.5", "has '1.5'"),
        ("1e3", "has '1e3'"),
        ("8K", "has '8K'"),
        ("8 16", "has '8 16'"),
        ("1--3", "has '1--3'"),
        ("٣", "is no count or range"),
        ("9" * 6000, "is no count or range"),
        ("4-1", "reversed: try 1-4"),
        ("1-100001", "more than 100000 values"),
        ("1-60000,70000-120000", "more than 100000 values"),
        ("1-999999999999999999", "more than 100000 values"),
    ],
)
def test_parse_counts_refuses(text: str, problem: str) -> None:
    """Bad parts are named, and a huge range is refused at once."""
    with pytest.raises(UnitError) as caught:
        parse_counts(text)
    assert problem in str(caught.value)
    assert "; counts of 1 or more were expected, such as 8, 1-33" in str(caught.value)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1500, "1500 B"),
        (1536, "1.5 KiB"),
        (9999, "9999 B"),
        (10_000, "9.766 KiB"),
        (1 << 26, "64 MiB"),
        ((1 << 30) + (1 << 20), "1025 MiB"),
        ((1 << 20) - 1, "1024 KiB"),
        (10**9, "953.7 MiB"),
        (1 << 40, "1 TiB"),
        (1 << 54, "16384 TiB"),
        (-1536, "-1.5 KiB"),
        (-10_000, "-9.766 KiB"),
    ],
)
def test_format_size(size: int, text: str) -> None:
    """Four digits at most below 10000 TiB, and exact where four digits can be."""
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Rate(50e9, "oneway"), "50 GB/s oneway"),
        (Rate(900e9, "duplex"), "900 GB/s duplex"),
        (Rate(3.35e12), "3.35 TB/s"),
        (Rate(12_345_678.0), "12.35 MB/s"),
        (Rate(2e3), "2 kB/s"),
        (Rate(0.5), "0.5 B/s"),
        (Rate(0.0), "0 B/s"),
    ],
)
def test_format_rate(rate: Rate, text: str) -> None:
    """Powers of 1000, with the direction if there is one."""
    assert format_rate(rate) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (3.2e-6, "3.2 us"),
        (1e-6, "1 us"),
        (1e-3, "1 ms"),
        (20e-9, "20 ns"),
        (1.25e-12, "1.25 ps"),
        (0.0123456, "12.35 ms"),
        (-3e-6, "-3 us"),
        (86_400.0, "86400 s"),
        (math.inf, "inf s"),
    ],
)
def test_format_time(seconds: float, text: str) -> None:
    """Four digits, and whole seconds beyond them."""
    assert format_time(seconds) == text


@given(st.integers(1, 9999), st.sampled_from([1, 1 << 10, 1 << 20, 1 << 30, 1 << 40]))
def test_sizes_of_four_digits_round_trip(digits: int, unit: int) -> None:
    """Up to four digits of any one unit are printed exactly."""
    assert parse_size(format_size(digits * unit)) == digits * unit


@given(st.integers(0, 2**62))
@example(1536)
@example(1023 * 1024 + 1)
def test_printed_sizes_are_close_and_exact_where_they_can_be(size: int) -> None:
    """A size is exact if any unit shows it in four digits, and otherwise rounded."""
    number, unit = format_size(size).split()
    printed = Fraction(number) * parse_size(f"1{unit}")
    assert abs(printed - size) <= Fraction(size, 2000)
    if size < 10_000 << 40:
        assert len(number.replace(".", "")) <= 4
    scaled = [Fraction(size, 1024**power) for power in range(5)]
    if any(value < 10_000 and Fraction(f"{float(value):.4g}") == value >= 1 for value in scaled):
        assert parse_size(f"{number} {unit}") == size
    assert format_size(-size) == ("" if size == 0 else "-") + format_size(size)


@given(st.integers(1, 9999), st.sampled_from(["B", "kB", "MB", "GB", "TB"]))
def test_rates_round_trip(digits: int, unit: str) -> None:
    """What a rate prints as reads back as that rate."""
    for direction in ("oneway", "duplex"):
        rate = parse_rate(f"{digits} {unit}/s {direction}")
        assert parse_rate(format_rate(rate)) == rate
        assert rate.duplex == 2 * rate.oneway


@given(st.floats(1e-12, 1e12))
def test_printed_times_read_back(seconds: float) -> None:
    """What a time prints as reads back to four digits."""
    assert parse_time(format_time(seconds)) == pytest.approx(seconds, rel=5.1e-4)


@given(st.text() | st.from_regex(r"\s?-?[0-9.]+(e[0-9]+)? ?[KMGTkmgti]?[Bbits]*(/s|ps)?( \w+)?"))
def test_parsers_raise_nothing_else(text: str) -> None:
    """Any text is parsed or refused as bad input."""
    for parse in PARSERS:
        with contextlib.suppress(UnitError):
            parse(text)
