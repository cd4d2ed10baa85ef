"""The command line as a user meets it: what it prints, where, and with which exit status."""

import json
import os
import socket
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

import roundelay as rl
from roundelay import RoundelayError, cli
from roundelay.bench import race
from roundelay.bench.cells import Point
from roundelay.bench.figures import Figure
from roundelay.cli import base, demo
from roundelay.cli.listening import listen
from roundelay.cli.output import printable


def run(capsys, *words):
    """Exit status, stdout and stderr of one command."""
    status = cli.run(list(words))
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture(autouse=True)
def _english(monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


def test_demo_shows_proves_and_counts(capsys, monkeypatch):
    monkeypatch.setattr(demo, "RACE_SIZES", (1024,))
    status, out, err = run(capsys, "demo")
    assert (status, err) == (0, "")
    assert "Step 6" in out
    assert "Proved: every rank ends with the sum of all four" in out
    assert "32,766" in out  # steps of the ring over 16,384 ranks: 2 * 16,383
    for algorithm in rl.algorithms("all_reduce"):
        assert algorithm.name in out


def test_demo_json_is_one_value(capsys, monkeypatch):
    monkeypatch.setattr(demo, "SIZES", (8, 2000))
    monkeypatch.setattr(demo, "RACE_SIZES", (1024, 4096))
    monkeypatch.setattr(demo, "RACE_LIMIT", 120)  # however busy the machine is
    status, out, _ = run(capsys, "demo", "--json")
    value = json.loads(out)
    assert status == 0
    assert value["ok"] is True
    assert {row["ranks"] for row in value["rows"]} == {8, 2000}
    if find_spec("roundelay._native") is None:
        assert value["run"]["ok"] is None
        return
    assert [row["bytes"] for row in value["run"]["rows"]] == [1024] * 5 + [4096] * 5
    assert all(row["wrong"] == 0 and row["time_us"] > 0 for row in value["run"]["rows"])
    assert set(value["run"]["winners"]) == {"1024", "4096"}
    assert set(value["run"]["winners"].values()) <= set(demo.RACE)


def test_demo_goes_on_without_the_native_core(capsys, monkeypatch):
    monkeypatch.setattr(demo, "SIZES", (8,))
    monkeypatch.setattr(race, "find_spec", lambda _: None)
    status, out, err = run(capsys, "demo")
    assert (status, err) == (0, "")
    assert "Not run: the native core is not built" in out
    assert "pip install" in out
    status, out, _ = run(capsys, "demo", "--json")
    value = json.loads(out)
    assert status == 0
    assert value["run"] == {"ok": None, "ranks": 4, "rows": [], "winners": {},
                            "error": value["run"]["error"]}  # fmt: skip


def test_every_help_without_the_native_core():
    """The pages are made from a source tree, which has none."""
    program = (
        "import sys; sys.modules['roundelay._native'] = None\n"
        "from roundelay.cli import run\n"
        "from roundelay.cli.base import COMMANDS\n"
        "assert len(COMMANDS) > 10\n"
        "for name in COMMANDS: assert run([name, '--help']) == 0, name\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_demo_fails_where_a_result_is_wrong(capsys, monkeypatch):
    def wrong(collective, algorithms, *_):
        for name in algorithms:
            point = Point(collective, name, 4, 256, "float32", "sum", 0)
            yield point, Figure(12.0, 3, 7 if name == "ring" else 0)

    monkeypatch.setattr(demo, "SIZES", (8,))
    monkeypatch.setattr(demo, "race", wrong)
    status, out, _ = run(capsys, "demo")
    assert status == 1
    assert "FAILED: 7 wrong elements" in out


def test_algorithms_lists_every_algorithm(capsys):
    _, out, _ = run(capsys, "algorithms")
    assert all(f"{a.collective}/{a.name}" in out for a in rl.algorithms())
    _, out, _ = run(capsys, "algorithms", "all_reduce", "--json")
    entry = next(e for e in json.loads(out) if e["algorithm"] == "ring")
    assert set(entry) == {
        "collective", "algorithm", "parameters", "messages", "bytes_sent", "steps", "good", "bad",
        "source",
    }  # fmt: skip
    assert entry["steps"] == "2*(n-1)"


def test_verify_json_shape(capsys):
    status, out, _ = run(capsys, "verify", "all_reduce/ring", "-n", "1-4", "--json")
    value = json.loads(out)
    assert status == 0
    assert value["ok"] is True
    assert [r["ranks"] for r in value["results"]] == [1, 2, 3, 4]
    assert {"collective", "algorithm", "ranks", "ok", "sampled", "same_bits", "summation",
            "counterexample"} <= set(value["results"][0])  # fmt: skip


def test_verify_says_that_it_sampled(capsys):
    status, out, _ = run(capsys, "verify", "all_gather/bruck", "-n", "2000")
    assert status == 0
    assert "sampled 16 of 2,000 chunks" in out


def test_json_before_the_target_does_not_swallow_it(capsys):
    status, out, _ = run(capsys, "verify", "--json", "all_reduce/ring", "-n", "2")
    assert status == 0
    assert json.loads(out)["results"][0]["algorithm"] == "ring"


def test_json_to_a_file_leaves_the_table_on_stdout(capsys, tmp_path):
    file = tmp_path / "out.json"
    status, out, _ = run(capsys, "cost", "all_reduce/ring", "-n", "8", "--json", str(file))
    assert status == 0
    assert "bytes sent, busiest rank" in out
    assert json.loads(file.read_text())["steps"] == 14


def test_cost_json_shape(capsys):
    _, out, _ = run(capsys, "cost", "all_reduce/ring", "-n", "16384", "64MiB", "--json")
    value = json.loads(out)
    assert value["steps"] == value["messages_max"] == 32766
    assert value["bytes_sent_max"] == 2 * 64 * 2**20 * 16383 // 16384
    assert value["counted"] is True
    assert value["bound"] == {
        "steps": 14, "bytes_sent_max": value["bytes_sent_max"], "ports": "one", "in_switch": False,
    }  # fmt: skip


def test_cost_of_a_collective_is_a_table_beside_the_bounds(capsys):
    status, out, _ = run(capsys, "cost", "all_reduce", "-n", "16384", "64MiB")
    assert status == 0
    assert "two_shot *" in out  # counted by formula, and marked so
    assert "least, one port" in out


def test_cost_of_uneven_pieces(capsys):
    _, out, _ = run(capsys, "cost", "all_gather_v/ring", "-n", "3", "--weights", "1,2K,3", "--json")
    assert json.loads(out)["bytes_sent_max"] == 2051  # 2048 and 3: all but the next rank's piece


def test_show_draws_into_a_file(capsys, tmp_path):
    file = tmp_path / "ring.svg"
    status, out, err = run(capsys, "show", "all_reduce/ring", "--svg", str(file))
    assert status == 0
    assert out.startswith("all_reduce/ring: 4 ranks")
    assert str(file) in err
    assert file.read_text().startswith("<svg")


def test_exported_schedules_are_proved_again(capsys, tmp_path):
    file = str(tmp_path / "two_level.json")
    assert run(capsys, "export", "all_reduce/rails", "-n", "8", "-p", "group=4", "-o", file)[0] == 0
    assert run(capsys, "verify", file)[0] == 0
    assert run(capsys, "show", file)[0] == 0
    _, out, _ = run(capsys, "cost", file, "1MiB", "--json")
    assert json.loads(out)["steps"] == 8


def test_a_wrong_schedule_file_fails_with_status_1(capsys, tmp_path):
    file = tmp_path / "wrong.json"
    run(capsys, "export", "all_reduce/ring", "-n", "4", "-o", str(file))
    text = file.read_text().replace('"op":"reduce","times":3', '"op":"reduce","times":2')
    file.write_text(text)
    status, out, _ = run(capsys, "verify", str(file), "--json")
    assert status == 1
    found = json.loads(out)["results"][0]["counterexample"]
    assert found["missing"]
    assert found["ranks"] == 4


def test_algorithms_from_a_python_file(capsys, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "from roundelay import algorithm, Round, Schedule\n"
        "@algorithm('broadcast', messages='n - 1', bytes_sent='S*(n-1)', steps='1',\n"
        "           good='-', bad='-', source='-')\n"
        "def mine(n):\n"
        "    return Schedule('broadcast', n, 1, [Round(0, np.arange(1, n), 0)])\n"
    )
    status, out, _ = run(capsys, "verify", str(file), "-n", "1-9")
    assert status == 0
    assert "broadcast/mine" in out
    file.write_text(file.read_text().replace("'S*(n-1)'", "'S'"))
    status, out, _ = run(capsys, "verify", str(file), "-n", "3")
    assert status == 1
    assert "cost card" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("cost all_reduce/ring -n 0", "'0'"),
        ("cost all_reduce/ring -n -3", "-3"),
        ("cost all_reduce/ring -n 2.5", "2.5"),
        ("cost all_reduce/ring", "Add -n"),
        ("cost all_reduce/ring -n 4 12GB/s", "is a rate; a size was expected"),
        ("cost all_reduce/ring -n 1-4", "expected one here"),
        ("show broadcast/binomial -n 4 --root 4", "root = 4; expected a rank, 0 to 3"),
        ("show all_reduce/ring -n 4 --root 1", "has no root"),
        ("verify all_reduce/rnig", "did you mean ring"),
        ("verify all_reduse", "did you mean all_reduce"),
        ("verify all_reduce/ring -p group=2", "unknown parameter"),
        ("verify all_reduce/rails -n 8 -p group=3", "do not fill nodes of 3"),
        ("verify all_reduce/rails -n 8 -p group", "expected key=value"),
        ("verify all_reduce/rails -n 8 -p group=x", "group"),
        ("verify all_reduce/double_tree -n 8 -p pieces=0", "pieces = 0"),
        ("verify all_reduce/rails -n 8 -p inner=none", "unknown algorithm of reduce_scatter"),
        ("show all_reduce/ring -n 400", "400"),
        ("cost all_reduce/ring -n 99999999999", "99,999,999,999 ranks"),
        ("verfy", "did you mean 'verify'"),
        ("verify nothing.json", "nothing.json"),
        ("algorithms --lang fr", "fr"),
        ("export all_to_all/direct -n 9000", "moves to list"),
    ],
)  # fmt: skip
def test_bad_input_says_what_and_exits_2(capsys, words, says):
    status, out, err = run(capsys, *words.split())
    assert (status, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_chinese(capsys):
    _, out, _ = run(capsys, "verify", "all_reduce/ring", "-n", "4", "--lang", "zh")
    assert "通过" in out
    _, out, _ = run(capsys, "--lang", "zh", "--help")
    assert "命令" in out
    _, out, _ = run(capsys, "cost", "--help", "--lang", "zh")
    assert "选项" in out


@pytest.mark.parametrize(
    "words",
    [
        "--help", "algorithms", "algorithms all_gather", "verify --help", "verify broadcast -n 1-5",
        "verify all_gather/bruck -n 2000", "cost all_reduce -n 2000", "cost all_reduce/switch -n 8",
        "cost --help", "show --help", "show all_reduce/ring", "export --help", "demo --help",
        "demo",
        "completion --help", "verify all_reduce/rng",
    ],
)  # fmt: skip
def test_nothing_is_said_in_english_only(capsys, monkeypatch, words):
    """Every text that a command asks to have translated stands in the table."""
    missing = set()

    def recording(lang):
        tell = translator(lang)

        def told(text):
            if lang == "zh" and text and tell(text) == text and not text.startswith("  "):
                missing.add(text)
            return tell(text)

        return told

    translator = base.translator
    monkeypatch.setattr(base, "translator", recording)
    monkeypatch.setattr(demo, "SIZES", (8, 2000))
    monkeypatch.setattr(demo, "RACE_SIZES", (1024,))
    run(capsys, "--lang", "zh", *words.split())
    texts = {text for a in rl.algorithms() for text in (a.good, a.bad)}
    assert missing <= {"{first} {second}", *texts}


def test_help_is_chinese_with_what_click_adds(capsys):
    _, out, _ = run(capsys, "place", "--help", "--lang", "zh")
    said = " ".join(out.split())
    for words in ("用法: roundelay place", "[必填]", "[默认：train.py]", "带节点数的机型"):
        assert words in said
    assert not {"required", "default", "machine", "Usage"} & {*said.replace("[", " ").split()}


@pytest.mark.parametrize("name", base.COMMANDS)
def test_every_option_has_its_translation(name):
    """Also where its text is put together."""
    tell = base.translator("zh")
    command = cli.roundelay.get_command(click.Context(cli.roundelay), name)
    assert command is not None
    parts = [command, *getattr(command, "commands", {}).values()]
    texts = [p.help for c in parts for p in c.params if isinstance(p, click.Option) and p.help]
    assert [text for text in texts if tell(text) == text] == []


def test_every_text_has_its_translation():
    """What is said in the code stands in the table.

    What algorithms are good and bad for may follow later: to add one takes one file.
    """
    package = Path(rl.__file__).parent
    table = tomllib.loads((package / "lang" / "zh.toml").read_text("utf-8"))
    wanted = set(_said(package))
    assert sorted(wanted - set(table)) == []


def _said(package):
    """Literal first arguments of say(...) and message(...), and help texts of the commands."""
    import ast

    for file in package.rglob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = (
                node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            )
            if called in ("say", "message") and node.args:
                yield from _texts(node.args[0])
            if file.parent.name == "cli":
                yield from (t for k in node.keywords if k.arg in ("help", "short_help")
                            for t in _texts(k.value))  # fmt: skip


def _texts(node):
    import ast

    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)


def test_a_closed_pipe_is_no_error():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = f"{sys.executable} -m roundelay algorithms | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment,
                          check=True)  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert done.stdout.splitlines()[-1] == "0"


def test_completion_of_targets(capsys):
    status, out, _ = run(capsys, "completion", "bash")
    assert status == 0
    assert "_ROUNDELAY_COMPLETE" in out
    from roundelay.cli.targets import complete_target

    found = complete_target(None, None, "all_reduce/r")
    assert "all_reduce/ring" in found
    assert all(name.startswith("all_reduce/r") for name in found)


TWO = """
import numpy as np
from roundelay import algorithm, build, reverse, then

@algorithm("all_gather", messages="n - 1", bytes_sent="S*(n-1)/n", steps="n - 1")
def around(n):
    return build("all_gather/ring", n)

back = around.transpose()
"""


def test_one_of_several_algorithms_in_a_file(capsys, tmp_path):
    file = tmp_path / "two.py"
    file.write_text(TWO)
    assert run(capsys, "verify", str(file), "-n", "1-5")[0] == 0
    status, _, err = run(capsys, "show", str(file), "-n", "3")
    assert status == 2
    assert f"{file}:reduce_scatter/around" in err
    status, out, _ = run(capsys, "show", f"{file}:reduce_scatter/around", "-n", "3")
    assert status == 0
    assert out.startswith("reduce_scatter/around: 3 ranks")
    status, _, err = run(capsys, "cost", str(file), "-n", "3")
    assert (status, f"{file}:all_gather" in err) == (2, True)
    status, _, err = run(capsys, "cost", f"{file}:all_gather/abound", "-n", "3")
    assert (status, "did you mean all_gather/around" in err) == (2, True)


def test_where_nobody_can_listen():
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(RoundelayError, match="already in use; try another --port, or --port 0"),
    ):
        listen("127.0.0.1", taken.getsockname()[1])
    for host in ("192.0.2.1", "no.such.invalid"):
        with pytest.raises(RoundelayError, match="expected a --host of this machine"):
            listen(host, 0)


def test_what_programs_print_steers_no_terminal():
    assert printable("a\x1b[2J\r\u0085é\n\t") == "a\\x1b[2J\\r\\x85é\n\t"


def test_an_error_in_a_users_file_says_where(capsys, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(TWO.replace('build("all_gather/ring", n)', "ring(n)"))
    status, _, err = run(capsys, "verify", str(file), "-n", "3")
    assert status == 2
    assert f"{file}, line 7: around(3): NameError: name 'ring' is not defined" in err
    status, _, err = run(capsys, "verify", str(tmp_path / "none.py"))
    assert (status, "No such file" in err) == (2, True)
