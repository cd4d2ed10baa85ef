"""What the pages show of the library, made when they are built: drawings, algorithms, fields.

`{drawing} all_reduce/ring 4 group=2` draws a schedule. `{algorithms}` lists the registry.
`{schedule-file}` makes a table of the JSON Schema of schedule files. Words that the library
knows in the page's language come from the library; docstrings are translated like any text.
"""

import inspect
import json
from html import escape
from pathlib import Path

import refresh
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from roundelay import Schedule, build
from roundelay.algorithms import Algorithm, algorithms
from roundelay.collectives import COLLECTIVES
from roundelay.formats.schedule import schema
from roundelay.i18n import translator
from roundelay.show import show, svg

SHOWN_AT = 4
SHOWN_AT_TWO_LEVELS = 8
COUNTED_AT = 8
DRAWN_WITH = {"pieces": 2}
"""Parameters of drawings: the default of 8 pieces would not fit beside the text."""


class Page(SphinxDirective):
    """What the directives share: the page's language, and nodes that are not to be translated."""

    @property
    def lang(self) -> str:
        return "zh" if self.config.language.startswith("zh") else "en"

    def say(self, text: str) -> str:
        """The library's own words, in the page's language."""
        return translator(self.lang)(text)

    def drawing(self, schedule: Schedule, name: str) -> nodes.Node:
        """An image of the schedule; its text for those who do not see it is the first lines."""
        if self.env.app.builder.format != "html":
            return nodes.raw("", "", format="html")
        folder = Path(self.env.app.outdir) / "_images"
        folder.mkdir(exist_ok=True)
        file = name.replace("/", "-").replace(" ", "-").replace("=", "") + ".svg"
        (folder / file).write_text(svg(schedule, self.lang), "utf-8")
        uri = "../" * self.env.docname.count("/") + f"_images/{file}"
        alt = " ".join(show(schedule, lang=self.lang).splitlines()[:2])
        html = (
            f'<figure class="drawing"><a href="{uri}">'
            f'<img src="{uri}" alt="{escape(alt)}" loading="lazy"></a></figure>'
        )
        return nodes.raw("", html, format="html")

    def table(self, head: list[str], rows: list[list[nodes.Node]]) -> nodes.Node:
        table = nodes.table()
        group = nodes.tgroup(cols=len(head))
        group += [nodes.colspec(colwidth=1) for _ in head]
        group += nodes.thead("", _row([nodes.Text(h) for h in head]))
        group += nodes.tbody("", *map(_row, rows))
        table += group
        return table


def _row(cells: list[nodes.Node]) -> nodes.Node:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", c)) for c in cells))


class Drawing(Page):
    """A drawing: COLLECTIVE/ALGORITHM, the number of ranks, and parameters."""

    required_arguments = 2
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        what, n, *params = self.arguments
        pairs = (p.split("=") for p in params)
        given = {k: int(v) if v.isdigit() else v for k, v in pairs}
        return [self.drawing(build(what, int(n), **given), " ".join(self.arguments))]


class Algorithms(Page):
    """Every algorithm of the registry, by collective."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # what is listed here changes without this page
        found = {name: algorithms(name) for name in COLLECTIVES if not name.endswith("_v")}
        return [self.collective(name, some) for name, some in found.items()]

    def collective(self, name: str, some: list[Algorithm]) -> nodes.Node:
        section = self.section(name, name)
        head = ["algorithm", "steps", "messages", "bytes sent / S"]
        rows = []
        for a in some:
            card = a.card(COUNTED_AT)
            figures = (card.steps, card.messages, card.bytes_sent)
            name = f"{a.collective}/{a.name}"
            link = nodes.reference("", a.name, refid=_anchor(name))
            rows.append([link, *(nodes.Text(f"{float(x):,.4g}") for x in figures)])
        at = self.say(
            "{k} algorithms, counted at n = {n}; messages and bytes are those of the "
            "busiest rank.\nFormulas and sources: roundelay algorithms all_reduce"
        )
        at = at.split("\n")[0].format(k=len(some), n=COUNTED_AT)
        section += self.table([self.say(h) for h in head], rows)
        section += nodes.paragraph("", at)
        section += [self.algorithm(a) for a in some]
        return section

    def section(self, title: str, anchor: str) -> nodes.section:
        anchor = _anchor(anchor)
        section = nodes.section("", nodes.title("", title), ids=[anchor], names=[anchor])
        self.state.document.note_explicit_target(section)
        return section

    def algorithm(self, a: Algorithm) -> nodes.Node:
        name = f"{a.collective}/{a.name}"
        section = self.section(name, name)
        origin = _origin(a)
        text = inspect.getdoc(inspect.getmodule(origin.function)) or ""
        section += [self.paragraph(part) for part in text.split("\n\n")]
        if origin is not a:
            section += self.transposed(origin)
        section += self.words(a)
        section += self.card(a)
        two_levels = {"group", "groups"} & set(a.parameters)
        n = SHOWN_AT_TWO_LEVELS if two_levels else SHOWN_AT
        params = {k: v for k, v in DRAWN_WITH.items() if k in a.parameters}
        section += self.drawing(a(n, **params), f"{name}-{n}")
        if origin is a:
            section += nodes.literal_block("", _source(a), language="python")
        return section

    def paragraph(self, text: str) -> nodes.Node:
        """A paragraph of a docstring, to be translated with the page."""
        text = " ".join(text.replace("``", "`").split())
        paragraph = nodes.paragraph(text, "")
        for i, part in enumerate(text.split("`")):
            paragraph += nodes.literal("", part) if i % 2 else nodes.Text(part)
        paragraph.source, paragraph.line = self.get_source_info()
        return paragraph

    def transposed(self, origin: Algorithm) -> nodes.Node:
        name = f"{origin.collective}/{origin.name}"
        paragraph = nodes.paragraph("", "reverse(")
        paragraph += [nodes.reference("", name, refid=_anchor(name)), nodes.Text(")")]
        return paragraph

    def card(self, a: Algorithm) -> nodes.Node:
        card, rows = a.card(COUNTED_AT), []
        for what, formula, value in (
            ("steps", a.steps, f"{float(card.steps):,.4g}"),
            ("messages", a.messages, f"{float(card.messages):,.4g}"),
            ("bytes sent", a.bytes_sent, f"{float(card.bytes_sent):,.4g} S"),
        ):
            rows.append([nodes.Text(self.say(what)), nodes.literal("", formula), nodes.Text(value)])
        return self.table(["", "", f"n = {COUNTED_AT}"], rows)

    def words(self, a: Algorithm) -> nodes.Node:
        given = ", ".join(k if v is None else f"{k}={v}" for k, v in a.parameters.items())
        parameters = "参数" if self.lang == "zh" else "parameters"
        said = [("good for", self.say(a.good)), ("bad for", self.say(a.bad)), ("source", a.source)]
        items = [(self.say(label), nodes.Text(text)) for label, text in said]
        items += [(parameters, nodes.literal("", given))] if given else []
        colon = "：" if self.lang == "zh" else ": "
        listed = (
            nodes.list_item("", nodes.paragraph("", "", nodes.strong("", label + colon), text))
            for label, text in items
        )
        return nodes.bullet_list("", *listed)


def _anchor(name: str) -> str:
    return name.replace("/", "-").replace("_", "-")


def _origin(a: Algorithm) -> Algorithm:
    """The algorithm that this one is the transpose of, or itself."""
    inner = getattr(a.function, "__closure__", None) or ()
    return next((c.cell_contents for c in inner if isinstance(c.cell_contents, Algorithm)), a)


def _source(a: Algorithm) -> str:
    """The function, and what stands in its file after the decorator, without the imports."""
    source = inspect.getsource(a.function)
    return source[source.index("def ") :]


class ScheduleFile(Page):
    """A table of the fields of a schedule file, or with an argument those of a round in it."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0] if self.arguments else "ScheduleFile"
        kind = schema()["$defs"][name]
        rows = []
        for field, what in kind["properties"].items():
            default = "" if field in kind["required"] else json.dumps(what.get("default"))
            rows.append(
                [
                    nodes.literal("", field),
                    nodes.literal("", _type(what)),
                    nodes.literal("", default) if default else nodes.Text(""),
                ]
            )
        head = {"en": ["field", "JSON", "default"], "zh": ["字段", "JSON", "默认值"]}
        return [self.table(head[self.lang], rows)]


def _type(what: dict) -> str:
    """A JSON Schema type in few words."""
    if "anyOf" in what:
        return " | ".join(_type(w) for w in what["anyOf"])
    if "$ref" in what:
        return what["$ref"].split("/")[-1]
    if "enum" in what:
        return " | ".join(f'"{v}"' if isinstance(v, str) else str(v) for v in what["enum"])
    if what.get("type") == "array":
        return f"[{_type(what.get('items', {}))}, ...]"
    if what.get("type") == "object":
        return f"{{name: {_type(what.get('additionalProperties', {}))}}}"
    return what.get("type", "any") + _limits(what)


def _limits(what: dict) -> str:
    signs = (
        ("minimum", ">="),
        ("exclusiveMinimum", ">"),
        ("maximum", "<="),
        ("exclusiveMaximum", "<"),
    )
    return "".join(f", {sign} {_short(what[k])}" for k, sign in signs if k in what)


def _short(value: int) -> str:
    power = abs(value).bit_length() - 1
    if power >= 24 and abs(value) == 1 << power:
        return f"{'-' if value < 0 else ''}2^{power}"
    return f"{value:,}"


def _no_type(app, what, name, obj, options, lines: list[str]) -> None:
    """Napoleon takes what stands before a colon for the type of a property."""
    if what == "property" and lines:
        lines[0] = lines[0].replace(": ", " – ")


def _in_english_only(app) -> None:
    """Design records are not translated, so the message catalogues leave them out."""
    if app.builder.name == "gettext":
        app.config.exclude_patterns.append("design/*")
        app.config.suppress_warnings.append("toc.excluded")


def _help_in_chinese(app, doctree) -> None:
    """Help texts in a page are checked in English; a Chinese page shows the Chinese ones."""
    if not app.config.language.startswith("zh"):
        return
    for block in doctree.findall(nodes.literal_block):
        command = block.astext().split("\n")[0]
        if command.startswith("$ roundelay") and command.endswith("--help"):
            command += " --lang zh"
            text = f"{command}\n{refresh.run(command[2:])}"
            block.rawsource, block[:] = text, [nodes.Text(text)]


def setup(app):
    app.connect("doctree-read", _help_in_chinese)
    app.connect("builder-inited", _in_english_only)
    app.connect("autodoc-process-docstring", _no_type, priority=100)
    app.add_directive("drawing", Drawing)
    app.add_directive("algorithms", Algorithms)
    app.add_directive("schedule-file", ScheduleFile)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
