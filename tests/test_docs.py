"""The documentation says what the library does: commands, sessions, examples, both languages."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import roundelay as rl
from roundelay.cli import roundelay as command_line

TOP = Path(__file__).resolve().parent.parent
CATALOGUES = TOP / "docs" / "locale" / "zh_CN" / "LC_MESSAGES"


def _load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


refresh = _load(TOP / "docs" / "refresh.py")
PAGES = [pytest.param(p, id=p.relative_to(TOP).as_posix()) for p in refresh.pages()]
EXAMPLES = [pytest.param(p, id=p.stem) for p in sorted(TOP.glob("examples/*.py"))]
READMES = [TOP / "README.md", TOP / "README.zh-CN.md"]


# What is shown is what is printed; `python docs/refresh.py` brings it up to date.


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_print_what_it_shows(page):
    text = page.read_text("utf-8")
    assert refresh.refreshed(text) == text


@pytest.mark.parametrize("page", PAGES)
def test_sessions_of_a_page_are_real(page):
    assert not refresh.doctests(page.read_text("utf-8"), page.name)


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_prints_its_output(example):
    assert refresh.output(example) == example.with_suffix(".out").read_text("utf-8")


@pytest.mark.parametrize(("name", "lang"), refresh.PICTURES.items())
def test_picture_of_the_readme_is_current(name, lang):
    drawn = (TOP / "docs" / "_static" / name).read_text("utf-8")
    assert drawn == rl.svg(rl.build("all_reduce/ring", 4), lang)


def test_every_command_has_its_help_in_the_page():
    page = (TOP / "docs" / "guides" / "command-line.md").read_text("utf-8")
    context = click.Context(command_line)
    for name in command_line.list_commands(context):
        assert f"$ roundelay {name} --help\nUsage: roundelay {name}" in page


def test_every_public_name_is_in_the_reference():
    page = (TOP / "docs" / "reference" / "api.md").read_text("utf-8")
    documented = set(re.findall(r":: roundelay\.(\w+)(?:\(\))?$", page, re.M))
    assert documented >= set(rl.__all__)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\n...\nb", "a\nb", True),
        ("a\n...\nb", "a\nx\ny\nb", True),
        ("...\nb", "x\nb", True),
        ("a\n...", "a\nx", True),
        ("a\n...\nb", "a\nx", False),
        ("a\n...\nb", "x\na\nb", False),
        ("a", "a\nb", False),
    ],
)
def test_dots_stand_for_any_lines(shown, printed, same):
    assert refresh.matches(shown, printed) is same


def test_a_page_that_shows_something_else_is_noticed():
    page = "```console\n$ roundelay cost all_reduce/ring -n 2 1KiB\nfree of charge\n```\n"
    assert "free of charge" not in refresh.refreshed(page)
    assert refresh.doctests("```pycon\n>>> 1 + 1\n3\n```\n", "page")


# The README: the same commands in both languages, and they are commands there are.


def _blocks(path: Path, *kinds: str) -> list[str]:
    found = refresh.FENCE.finditer(path.read_text("utf-8"))
    return [m[3] for m in found if m[2].strip() in kinds]


def _commands(path: Path) -> list[list[str]]:
    lines = "".join(_blocks(path, "console", "sh", "shell")).splitlines()
    words = (shlex.split(line.removeprefix("$ "), comments=True) for line in lines)
    return [w for w in words if w]


def test_readme_has_the_same_commands_and_code_in_both_languages():
    english, chinese = READMES
    assert _commands(english) == _commands(chinese)
    code = [[re.sub(r" +#.*", "", b) for b in _blocks(p, "python")] for p in READMES]
    assert code[0] == code[1]


@pytest.mark.parametrize("readme", READMES, ids=lambda p: p.name)
def test_commands_of_the_readme_are_understood(readme):
    ours = [words[1:] for words in _commands(readme) if words[0] == "roundelay"]
    assert ours
    for words in ours:
        context = click.Context(command_line, info_name="roundelay")
        name, command, rest = command_line.resolve_command(context, list(words))
        command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("readme", READMES, ids=lambda p: p.name)
def test_code_of_the_readme_runs(readme):
    exec("".join(_blocks(readme, "python")), {})


@pytest.mark.parametrize("readme", READMES, ids=lambda p: p.name)
def test_links_of_the_readme_lead_somewhere(readme):
    links = re.findall(r"\]\(([^)#]+)\)", readme.read_text("utf-8"))
    for link in links:
        assert re.match(r"\w+://", link) or (TOP / link).exists(), link


# The walkthrough of CONTRIBUTING: its file is an algorithm, found as soon as it is in its place.


def test_walkthrough_makes_an_algorithm_that_the_registry_finds(tmp_path):
    text = (TOP / "CONTRIBUTING.md").read_text("utf-8")
    place = Path(re.search(r"Put this into `(src/\S+\.py)`", text)[1])
    code = next(m[3] for m in refresh.FENCE.finditer(text) if m[2] == f"python {place.name}")
    package = Path(rl.__file__).parent
    shutil.copytree(package, tmp_path / "src" / "roundelay")
    (tmp_path / place).unlink(missing_ok=True)  # somebody may be following the walkthrough
    (tmp_path / place).write_text(code, "utf-8")
    target = f"{place.parent.name}/{place.stem}"
    # -S: no editable install may stand before the copy; its packages by their paths.
    paths = [str(tmp_path / "src"), *(p for p in sys.path if Path(p).name == "site-packages")]
    done = subprocess.run(
        [sys.executable, "-S", "-m", "roundelay", "verify", target, "-n", "1-12"],
        env={**os.environ, **refresh.PLAIN, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert target in done.stdout
    assert "cases proved: 48; algorithms: 1" in done.stdout


# The Chinese catalogues: complete, and made from the pages as they are.

ENTRY = re.compile(r'^((?:#.*\n)*)msgid ((?:".*"\n)+)msgstr ((?:".*"\n)+)', re.M)


def catalogue_of(path: Path) -> dict[str, str]:
    """Messages and their translations; those marked fuzzy have none."""

    def text(quoted: str) -> str:
        joined = "".join(line[1:-1] for line in quoted.splitlines())
        return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), joined)

    found = {}
    for comments, source, translation in ENTRY.findall(path.read_text("utf-8")):
        if text(source):
            found[text(source)] = "" if ", fuzzy" in comments else text(translation)
    return found


def translated_pages() -> list[Path]:
    pages = [p.relative_to(TOP / "docs") for p in refresh.pages() if TOP / "docs" in p.parents]
    return [p for p in pages if p.parts[0] != "design"]


@pytest.mark.parametrize("page", translated_pages(), ids=str)
def test_page_is_translated(page):
    catalogue = catalogue_of(CATALOGUES / page.with_suffix(".po"))
    assert catalogue
    assert not [source for source, translation in catalogue.items() if not translation]


@pytest.mark.parametrize("page", translated_pages(), ids=str)
def test_catalogue_has_no_lines_that_change_with_the_text_around(page):
    assert "\n#: " not in (CATALOGUES / page.with_suffix(".po")).read_text("utf-8")


@pytest.mark.parametrize("page", translated_pages(), ids=str)
def test_translation_keeps_code_and_links(page):
    """What stands in backquotes is the same in both languages, and so is where links lead."""

    def quoted(text: str) -> list[str]:
        return sorted(re.sub(r".*<(.*)>", r"\1", q) for q in re.findall(r"`+([^`]+)`+", text))

    for source, translation in catalogue_of(CATALOGUES / page.with_suffix(".po")).items():
        assert quoted(source) == quoted(translation), source
