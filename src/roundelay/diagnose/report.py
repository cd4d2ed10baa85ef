"""A diagnosis as a file to keep or to send: Markdown, or one HTML page that loads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from ..i18n import Translate, message

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
pre{background:#8881;padding:.6rem;overflow-x:auto;font-size:13px}
.off{border-left:4px solid #c33;padding-left:1rem}.ok{border-left:4px solid #393;padding-left:1rem}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"""

SHOWN: Final = 20
"""Files whose list is open at first."""
_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(value: Any) -> Any:
    """The value without what a terminal would obey, or no file can hold: U+FFFD instead."""
    if isinstance(value, str):
        return _UNSEEN.sub("\ufffd", value.replace("\r", ""))
    if isinstance(value, dict):
        return {key: shown(inner) for key, inner in value.items()}
    return [shown(inner) for inner in value] if isinstance(value, list) else value


def markdown(value: Mapping[str, Any], translate: Translate) -> str:
    """The value of `--json` as Markdown."""
    lines = [f"# {message('What these files say').tell(translate)}"]
    if not value["findings"]:
        lines += ["", message("There is nothing to say of these files.").tell(translate)]
    for finding in value["findings"]:
        head = f"{_mark(finding, translate)}: {finding['kind']} ({finding['subject']})"
        lines += ["", f"## {head}", "", finding["reason"], "",
                  f"**{message('Try').tell(translate)}**: {finding['try']} "
                  f"({_sure(finding, translate)})"]  # fmt: skip
        if finding["evidence"]:
            lines += ["", "```text", *_cited(finding), "```"]
    notes = list(_notes(value, translate))
    if notes:
        lines += ["", f"## {message('Odd in these files').tell(translate)}", ""]
        lines += [f"- {note}" for note in notes]
    lines += ["", f"## {message('Files read').tell(translate)}", ""]
    lines += [f"- `{f['file']}`: {', '.join(f['kinds']) or '-'}" for f in value["files"]]
    return "\n".join(lines) + "\n"


def html(value: Mapping[str, Any], translate: Translate, lang: str) -> str:
    """The value of `--json` as a page."""
    title = escape(message("What these files say").tell(translate))
    parts = [
        f'<!doctype html><html lang="{lang}"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>",
    ]
    if not value["findings"]:
        nothing = message("There is nothing to say of these files.").tell(translate)
        parts.append(f"<p>{escape(nothing)}</p>")
    for finding in value["findings"]:
        parts += _section(finding, translate)
    notes = list(_notes(value, translate))
    if notes:
        head = escape(message("Odd in these files").tell(translate))
        parts += [f"<h2>{head}</h2><ul>", *(f"<li>{escape(note)}</li>" for note in notes), "</ul>"]
    head = escape(message("Files read").tell(translate))
    parts += [
        f"<details{' open' if len(value['files']) <= SHOWN else ''}><summary>{head}: "
        f"{len(value['files'])}</summary><ul>",
        *(f"<li><code>{escape(f['file'])}</code>: {escape(', '.join(f['kinds']) or '-')}</li>"
          for f in value["files"]),
        "</ul></details>",
    ]  # fmt: skip
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _section(finding: Mapping[str, Any], translate: Translate) -> Iterator[str]:
    kind = "off" if finding["fault"] else "ok"
    head = f"{_mark(finding, translate)}: {finding['kind']} ({finding['subject']})"
    yield f'<section class="{kind}"><h2>{escape(head)}</h2><p>{escape(finding["reason"])}</p>'
    yield (f"<p><strong>{escape(message('Try').tell(translate))}</strong>: "
           f"{escape(finding['try'])} ({escape(_sure(finding, translate))})</p>")  # fmt: skip
    if finding["evidence"]:
        yield f"<pre>{escape(chr(10).join(_cited(finding)))}</pre>"
    yield "</section>"


def _mark(finding: Mapping[str, Any], translate: Translate) -> str:
    text = message("off") if finding["fault"] else message("explained")
    return text.tell(translate)


def _sure(finding: Mapping[str, Any], translate: Translate) -> str:
    share = f"{100 * finding['confidence']:.0f} %"
    return message("sure to {share}", share=share).tell(translate)


def _cited(finding: Mapping[str, Any]) -> Iterator[str]:
    for e in finding["evidence"]:
        at = f"{e['file']}:{e['line']}" if e["line"] else e["file"]
        yield f"{at}: {e['text']}"


def _notes(value: Mapping[str, Any], translate: Translate) -> Iterator[str]:
    for note in value["notes"]:
        line = message("line {line}", line=note["line"]).tell(translate) if note["line"] else ""
        yield ": ".join(filter(None, [note["file"], line, note["text"]]))
