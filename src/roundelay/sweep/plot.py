"""A chart written to a file: SVG by ourselves, HTML by plotly, PNG by CairoSVG."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ..errors import RoundelayError
from .chart import DARK, LIGHT, Chart, Line, Scale

MOST_TICKS: Final = 12
"""Numbers along an axis."""
DARKEN: Final = """
if (matchMedia("(prefers-color-scheme: dark)").matches) {
  document.body.style.background = "#16191e";
  var plot = document.getElementById("{plot_id}"), dark = %s, look = {
    "paper_bgcolor": "#16191e", "plot_bgcolor": "#16191e", "font.color": "#e6edf3",
    "xaxis.gridcolor": "#3d444d", "yaxis.gridcolor": "#3d444d"};
  Plotly.relayout(plot, look);
  plot.data.forEach(function (line, i) {
    var colour = dark[i %% dark.length];
    Plotly.restyle(plot, {"line.color": colour, "marker.color": colour}, [i]);
  });
}
"""
"""Run by the page, which knows its reader's ground."""


def plotter(path: Path) -> Callable[[Chart], None]:
    """What writes a chart to the file, in the format of its ending; it is written at the end.

    Raises:
        RoundelayError: no such format, or what it needs is not installed.
    """
    write = _FORMATS.get(path.suffix.lower())
    if write is None:
        raise RoundelayError(f"{path} ends in {path.suffix or 'nothing'}; expected one of "
                             f"{', '.join(_FORMATS)}")  # fmt: skip
    tool = write()
    return lambda chart: _save(path, tool(chart))


def _save(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _svg() -> Callable[[Chart], bytes]:
    return lambda chart: chart.svg().encode()


def _png() -> Callable[[Chart], bytes]:
    cairosvg = _needed("cairosvg", "CairoSVG", "png")
    return lambda chart: bytes(cairosvg.svg2png(chart.svg().encode(), scale=2))


def _html() -> Callable[[Chart], bytes]:
    plotly = _needed("plotly.graph_objects", "plotly", "html")
    return lambda chart: _page(plotly, chart)


_FORMATS: Final = MappingProxyType({".svg": _svg, ".png": _png, ".html": _html})


def _needed(module: str, name: str, ending: str) -> Any:
    try:
        return importlib.import_module(module)
    except (ImportError, OSError):  # CairoSVG without the library cairo
        raise RoundelayError(
            f"a picture that ends in .{ending} needs {name}: pip install 'roundelay[plot]'; one "
            "that ends in .svg needs nothing"
        ) from None


def _page(plotly: Any, chart: Chart) -> bytes:
    """A page with the chart and plotly's own code in it, so that it needs no network."""
    figure = plotly.Figure(
        data=[
            *(_trace(line, i) for i, line in enumerate(chart.lines)),
            *(_band(line) for line in chart.lines if line.low),
        ],
        layout={
            "title": {"text": chart.title, "subtitle": {"text": chart.about}},
            "xaxis": _axis(chart.x, sorted({s.x for line in chart.lines for s in line.spots})),
            "yaxis": _axis(chart.y, chart.ticks),
            "template": "plotly_white",
            "hovermode": "closest",
        },
    )
    script = DARKEN % list(DARK)
    return str(figure.to_html(include_plotlyjs=True, post_script=script)).encode()


def _trace(line: Line, i: int) -> dict[str, Any]:
    colour = LIGHT[i % len(LIGHT)]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": line.name,
        "showlegend": bool(line.name),
        "x": [s.x for s in line.spots],
        "y": [s.y for s in line.spots],
        "text": [s.said for s in line.spots],
        "hoverinfo": "text",
        "line": {"color": colour, "dash": "solid" if i < len(LIGHT) else "dash"},
        "marker": {"color": colour},
    }


def _band(line: Line) -> dict[str, Any]:
    x = [s.x for s in line.spots]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*x, *reversed(x)],
        "y": [*line.high, *reversed(line.low)],
        "fill": "toself",
        "fillcolor": "rgba(140,149,159,.2)",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _axis(scale: Scale, values: Sequence[float]) -> dict[str, Any]:
    shown = values[:: -(-len(values) // MOST_TICKS)]
    return {
        "title": {"text": scale.title},
        "type": "log" if scale.logarithmic else "linear",
        "tickvals": shown,
        "ticktext": [scale.told(value) for value in shown],
    }
