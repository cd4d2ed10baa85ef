"""Keep what the pages show equal to what the library does: `python docs/refresh.py`.

In a page, a fenced block marked `console` holds commands, `$ roundelay ...`, each with its
output; they are run here, and the output is put in. A line `...` stands for any lines, and output
that has one is only compared. A block with a `:caption: name.py`, or marked `python name.py`, is a
file that later commands of the page can name; `name.py, continued` adds to it. Blocks marked
`pycon` are run as doctests. Examples have their output beside them in a `.out` file, and the README
has its picture.

With `--check` nothing is written: what differs is named, and the exit status is 1.
"""

import contextlib
import doctest
import io
import os
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

TOP = Path(__file__).resolve().parent.parent
PICTURES = {"ring.svg": "en", "ring.zh-CN.svg": "zh"}
FENCE = re.compile(r"^(```+)(.*)\n((?:.*\n)*?)\1[ ]*$", re.M)
NAMED = re.compile(r"^(?::caption:|\w+) ([\w.]+\.\w+)(, continued)?$", re.M)
PLAIN = {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", "LANGUAGE": "", "COLUMNS": "80"}


def pages() -> list[Path]:
    """The pages whose blocks are run."""
    found = (TOP / "docs").rglob("*.md")
    return [*sorted(p for p in found if "_build" not in p.parts), TOP / "CONTRIBUTING.md"]


def run(line: str) -> str:
    """What a command prints, on both streams."""
    from roundelay.cli import run as roundelay

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        roundelay(shlex.split(line)[1:])
    return said.getvalue().rstrip("\n")


def matches(expected: str, found: str) -> bool:
    """Whether they are equal, where a line `...` of what is expected stands for any lines."""
    first, *parts = [part.strip("\n") for part in f"\n{expected}\n".split("\n...\n")]
    if not parts:
        return first == found
    text = f"\n{found}\n"
    if first and not text.startswith(f"\n{first}\n"):
        return False
    at = len(first)
    for part in filter(None, parts):
        at = text.find(f"\n{part}\n", at)
        if at < 0:
            return False
        at += len(part)
    return not parts[-1] or text.endswith(f"\n{parts[-1]}\n")


def console(block: str) -> str:
    """The block with the output of its `roundelay` commands as it is now."""
    parts = re.split(r"^(\$ .*)\n", block, flags=re.M)
    out = [parts[0]]
    for command, output in zip(parts[1::2], parts[2::2], strict=True):
        expected = output.rstrip("\n")
        if command.startswith("$ roundelay"):
            found = run(command[2:])
            elided = "..." in expected.split("\n")
            if elided and not matches(expected, found):
                print(f"{command}: prints something else than what is shown:\n{found}")
                expected += "\n<differs>"
            expected = expected if elided else found
        out.append(f"{command}\n{expected}\n" if expected else f"{command}\n")
    return "".join(out)


def doctests(text: str, name: str) -> str:
    """What fails among the `pycon` blocks of a page, which share their names."""
    said = io.StringIO()
    blocks = [m for m in FENCE.finditer(text) if m[2].strip() == "pycon"]
    lines = [""] * (text.count("\n") + 1)
    for m in blocks:
        first = text.count("\n", 0, m.start(3))
        body = m[3].split("\n")
        lines[first : first + len(body)] = body
    test = doctest.DocTestParser().get_doctest("\n".join(lines), {}, name, name, 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=said.write)
    return said.getvalue()


def refreshed(text: str) -> str:
    """The page with its outputs as they are now."""

    def block(m: re.Match[str]) -> str:
        caption = NAMED.search(f"{m[2]}\n{m[3]}")
        if caption:
            body = re.sub(r"\A(?::.*\n)+\n?", "", m[3])
            with Path(caption[1]).open("a" if caption[2] else "w", encoding="utf-8") as file:
                file.write(body)
        if m[2].strip() != "console" or "$ roundelay" not in m[3]:
            return m[0]
        return f"{m[1]}{m[2]}\n{console(m[3])}{m[1]}"

    with _somewhere_else():
        return FENCE.sub(block, text)


@contextlib.contextmanager
def _somewhere_else() -> Iterator[None]:
    """In an empty folder, in plain English."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, PLAIN),
    ):
        yield


def output(example: Path) -> str:
    """What an example prints."""
    said = io.StringIO()
    with mock.patch.dict(os.environ, PLAIN), contextlib.redirect_stdout(said):
        runpy.run_path(str(example), run_name="__main__")
    return said.getvalue()


def everything() -> Iterator[tuple[Path, str]]:
    """Every file that shows what the library does, with the text it should have."""
    from roundelay import build
    from roundelay.show import svg

    for page in pages():
        yield page, refreshed(page.read_text("utf-8"))
    for example in sorted(TOP.glob("examples/*.py")):
        yield example.with_suffix(".out"), output(example)
    for name, lang in PICTURES.items():
        yield TOP / "docs" / "_static" / name, svg(build("all_reduce/ring", 4), lang)


def main(args: list[str]) -> int:
    """Write what differs, or only name it."""
    differs = 0
    for file, text in everything():
        if file.exists() and file.read_text("utf-8") == text:
            continue
        differs += 1
        print(f"{file.relative_to(TOP)} differs")
        if "--check" not in args:
            file.write_text(text, "utf-8")
    failed = [doctests(page.read_text("utf-8"), page.name) for page in pages()]
    print("".join(failed), end="")
    return 1 if any(failed) or (differs and "--check" in args) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
