"""The answer as one SVG that stands alone: the step, what computation waits for, the timeline, memory."""

import html
import os

from trellis.simulate.price import Priced
from trellis.simulate.report import words
from trellis.simulate.report.text import fits_words, rate_words

__all__ = ["picture"]

_COLORS = ("#2b7bba", "#d9822b", "#3d9970", "#8e6bbf", "#c9a227", "#c0504d", "#6b7785")
_WIDTH, _LEFT, _RIGHT = 860, 130, 20
_STYLE = """text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;font-size:11px}
text{fill:#1f2328}.paper{fill:#fbfbfa}.title{font-size:18px;font-weight:600}.dim{fill:#646c76}.rest{fill:#e4e8ec}
@media (prefers-color-scheme:dark){.paper{fill:#16191d}text{fill:#e3e6ea}.dim{fill:#9aa3ad}.rest{fill:#333a42}}"""

Part = tuple[str, float, str]  # a name, how much, in words


def _text(x: float, y: float, words_: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{html.escape(words_)}</text>'


class _Picture:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.y = 0

    def bar(self, name: str, parts: list[Part], whole: float, rest: str) -> None:
        """Parts beside each other, and what they leave of the whole; below, what each is."""
        width = _WIDTH - _LEFT - _RIGHT
        self.parts.append(_text(16, self.y + 15, name, "dim"))
        self.parts.append(f'<rect x="{_LEFT}" y="{self.y}" width="{width}" height="22" class="rest"/>')
        x, legend = float(_LEFT), float(_LEFT)
        for index, (label, amount, told) in enumerate(parts):
            color = _COLORS[index % len(_COLORS)]
            wide = min(amount / whole, 1.0) * width
            self.parts.append(f'<rect x="{x:.1f}" y="{self.y}" width="{wide:.1f}" height="22" fill="{color}">'
                              f"<title>{html.escape(label)}: {told}</title></rect>")  # fmt: skip
            x += wide
            text = f"{label} {told}"
            if legend + 7 * len(text) < _WIDTH - 120:
                self.parts.append(f'<rect x="{legend:.1f}" y="{self.y + 29}" width="9" height="9" fill="{color}"/>')
                self.parts.append(_text(legend + 13, self.y + 38, text))
                legend += 24 + 6.2 * len(text)
        if rest:
            self.parts.append(_text(legend, self.y + 38, rest, "dim"))
        self.y += 56

    def lanes(self, out: Priced) -> None:
        record, times = out.record, out.timed.classes[out.slowest]
        width = _WIDTH - _LEFT - _RIGHT
        found: dict[str, list[list[float]]] = {}
        for span in sorted(times.spans, key=lambda s: s.start):
            kind, _, number = span.lane.partition(" ")
            name = record.streams[int(number)] if kind == "stream" else f"{out.job.families[int(number)].name} (links)"
            busy = found.setdefault(name, [])
            if span.end <= span.start:
                continue
            if busy and span.start <= busy[-1][1] + out.time / width / 2:
                busy[-1][1] = max(span.end, busy[-1][1])
            else:
                busy.append([span.start, span.end])
        self.parts.append(_text(16, self.y + 10, "when what is busy", "dim"))
        self.y += 18
        for index, (name, spans) in enumerate((n, s) for n, s in found.items() if s):
            self.parts.append(_text(16, self.y + 11, name[:20]))
            scale = width / out.time
            boxes = [(_LEFT + start * scale, max((end - start) * scale, 0.3)) for start, end in spans]
            path = "".join(f"M{x:.1f} {self.y}h{wide:.1f}v13h-{wide:.1f}z" for x, wide in boxes)
            self.parts.append(f'<path d="{path}" fill="{_COLORS[index % len(_COLORS)]}"/>')
            self.y += 18
        self.parts.append(_text(_LEFT, self.y + 10, "0", "dim"))
        self.parts.append(_text(_WIDTH - _RIGHT - 40, self.y + 10, words.seconds(out.time), "dim"))
        self.y += 28


def _waits(out: Priced) -> list[Part]:
    busy = out.timed.classes[out.slowest].busy
    exposed = [(f"waits for {name}", t, words.seconds(t)) for name, t in out.exposed.items() if t > out.time / 200]
    return [("computes", busy, words.seconds(busy)), *exposed]


def picture(out: Priced) -> str:
    most = max(out.job.classes, key=lambda c: c.record.memory.peak).record.memory
    shown = _Picture()
    name = " ".join(os.path.basename(word) for word in out.job.command)[:100].rstrip()
    shown.parts.append(_text(16, 30, f"A step takes {words.seconds(out.time)}", "title"))
    shown.parts.append(_text(16, 48, f"{name}, on {out.machine.base}, {out.job.world} ranks", "dim"))
    between = f"between {words.seconds(out.low)} and {words.seconds(out.high)}"
    shown.parts.append(_text(16, 64, f"{between}; {rate_words(out)}"))
    shown.y = 80
    shown.bar("the step", _waits(out), out.time or 1.0, "")
    shown.lanes(out)
    memory = [(name, float(n), words.size(n)) for name, n in sorted(most.categories.items(), key=lambda x: -x[1])]
    memory.append(("runtime", float(out.runtime), words.size(out.runtime)))
    shown.bar("memory of a rank", memory, max(out.capacity, most.peak + out.runtime, 1.0),
              f"of {words.size(out.capacity)}: {fits_words(out).lower()}")  # fmt: skip
    size = f'width="{_WIDTH}" height="{shown.y}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_WIDTH} {shown.y}" role="img">',
            f"<title>{html.escape(name)}</title>", f"<style>\n{_STYLE}\n</style>",
            f'<rect {size} class="paper"/>']  # fmt: skip
    return "\n".join([*head, *shown.parts, "</svg>", ""])
