"""The report as one HTML page that stands alone: the answer, its timeline, memory, and what it rests on."""

import html

from trellis.simulate.price import Priced
from trellis.simulate.report import words
from trellis.simulate.report.text import text
from trellis.simulate.report.waits import waits

__all__ = ["page", "picture"]

_COLORS = ("#2b6cb0", "#c05621", "#2f855a", "#805ad5", "#b7791f", "#c53030", "#4a5568")
_WIDTH, _ROW, _LEFT = 1000, 18, 150


def _rows(out: Priced, which: int) -> list[tuple[str, list[tuple[float, float]]]]:
    """Streams and groups of a class, with when they are busy; neighbours that touch are one."""
    record = out.job.classes[which].record
    found: dict[str, list[tuple[float, float]]] = {}
    for span in sorted(out.timed.classes[which].spans, key=lambda s: s.start):
        if span.end <= span.start:
            continue
        kind, _, number = span.lane.partition(" ")
        name = record.streams[int(number)] if kind == "stream" else out.job.families[int(number)].name
        row = found.setdefault(name if kind == "stream" else f"group {name}", [])
        if row and span.start <= row[-1][1] + out.time / _WIDTH / 2:
            row[-1] = (row[-1][0], max(span.end, row[-1][1]))
        else:
            row.append((span.start, span.end))
    return list(found.items())


def picture(out: Priced) -> str:
    """The timeline as SVG."""
    lines: list[str] = []
    y = 20
    for which, one in enumerate(out.job.classes[:8]):
        lines.append(f'<text x="0" y="{y}" class="head">ranks {html.escape(words.ranks(one.ranks))}</text>')
        y += 8
        for index, (name, busy) in enumerate(_rows(out, which)):
            lines.append(f'<text x="8" y="{y + 12}">{html.escape(name)}</text>')
            for start, end in busy:
                x = _LEFT + start / out.time * (_WIDTH - _LEFT)
                width = max((end - start) / out.time * (_WIDTH - _LEFT), 0.4)
                title = f"{words.seconds(start)} to {words.seconds(end)}"
                lines.append(f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{_ROW - 4}" '
                             f'fill="{_COLORS[index % len(_COLORS)]}"><title>{title}</title></rect>')  # fmt: skip
            y += _ROW
        y += 20
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" font-family="sans-serif" '
            f'font-size="11"><style>.head{{font-weight:bold}}</style>{"".join(lines)}</svg>')  # fmt: skip


def _memory(out: Priced) -> str:
    one = max(out.job.classes, key=lambda c: c.record.memory.peak).record.memory
    whole = max(out.capacity, one.peak + out.runtime, 1)
    x, parts = 0.0, []
    held = [*sorted(one.categories.items(), key=lambda item: -item[1]), ("runtime", out.runtime)]
    for index, (name, size) in enumerate(held):
        width = size / whole * _WIDTH
        parts.append(f'<rect x="{x:.2f}" y="0" width="{width:.2f}" height="24" fill="{_COLORS[index % 7]}">'
                     f"<title>{name} {words.size(size)}</title></rect>")  # fmt: skip
        x += width
    limit = out.capacity / whole * _WIDTH
    parts.append(f'<line x1="{limit:.2f}" x2="{limit:.2f}" y1="0" y2="24" stroke="black" stroke-width="3"/>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} 24">{"".join(parts)}</svg>'


def page(out: Priced, end: str = "") -> str:
    """`end`: HTML that comes last."""
    rows = "".join(
        f"<tr><td>{words.seconds(w.seconds)}</td><td>{w.times}</td><td>{html.escape(w.what)}</td>"
        f"<td>{html.escape(w.where)}</td><td>{html.escape(w.why)}</td></tr>"
        for w in waits(out, 40)
    )
    operators = "".join(
        f"<tr><td>{html.escape(o.name)}</td><td>{o.count}</td><td>{words.seconds(o.time)}</td>"
        f"<td>{'its bytes' if o.default else o.kind}</td></tr>"
        for o in out.operators
    )
    title = f"{html.escape(' '.join(out.job.command))} on {html.escape(out.machine.base)}"
    style = ("body{font-family:sans-serif;max-width:1100px;margin:2em auto;color:#1a202c}pre{background:#f7fafc;"
             "padding:1em;overflow:auto;font-size:12px}td,th{padding:2px 10px;text-align:left;font-size:13px}"
             "h2{font-size:16px;margin-top:2em}")  # fmt: skip
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{style}</style></head>"
        f"<body><h1>A step takes {words.seconds(out.time)}</h1><p>{title}; between {words.seconds(out.low)} and "
        f"{words.seconds(out.high)}</p><h2>When what is busy</h2>{picture(out)}"
        f"<h2>Memory at the peak, of {words.size(out.capacity)}</h2>{_memory(out)}"
        f"<h2>What computation waits for</h2><table><tr><th>time</th><th>times</th><th>for</th><th>in</th>"
        f"<th>each takes</th></tr>{rows}</table><h2>Operators, of the slowest ranks</h2><table><tr><th>operator</th>"
        f"<th>times</th><th>time</th><th>priced as</th></tr>{operators}</table>"
        f"<h2>In words</h2><pre>{html.escape(text(out))}</pre>{end}</body></html>\n"
    )
