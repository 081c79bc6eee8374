"""`explain -o report.html`: one page with all that was decided, which needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from loopwright.cli.explanation import Explanation
from loopwright.road import KernelRoad, Stage, Step
from loopwright_core.kernel.describe import axis_size
from loopwright_core.kernel.kernel import Kernel

# One colour an axis kind, as `describe()` has them on a terminal.
_STYLE = """
:root { color-scheme: light dark; --back: #fff; --ink: #1b1f24; --dim: #5c6670; --line: #d5dae0;
  --soft: #f4f6f8; --new: #dff3e1; --link: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --ink: #e4e8ec; --dim: #9aa4ae;
  --line: #343a41; --soft: #1d2125; --new: #1d3a24; --link: #8ab4f8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 76rem; background: var(--back);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid var(--line); overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
p, ul, ol { margin: .5rem 0; } a { color: var(--link); } .dim { color: var(--dim); }
code, pre, .nest { font-family: ui-monospace, monospace; font-size: .85rem; }
pre { margin: 0; padding: .75rem; background: var(--soft); border: 1px solid var(--line);
  border-radius: .4rem; overflow-x: auto; line-height: 1.45; }
pre b { font-weight: normal; background: var(--new); }
pre i { font-style: normal; color: var(--dim); user-select: none; }
.wide { overflow-x: auto; } table { border-collapse: collapse; min-width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0;
  border-bottom: 1px solid var(--line); } th { font-weight: 600; } td.n { text-align: right; }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: .4rem; padding: 0 .75rem; }
details[open] { padding-bottom: .75rem; } summary { cursor: pointer; padding: .4rem 0; }
summary strong { display: inline-block; min-width: 5.5rem; }
.panes { display: grid; gap: .75rem; } .panes > div { min-width: 0; }
.panes h4 { margin: .25rem 0; font-size: .85rem; font-weight: 600; color: var(--dim); }
@media (min-width: 56rem) { .panes { grid-template-columns: 1fr 1fr; } }
.nest span { display: inline-block; margin: .1rem .15rem .1rem 0; padding: .05rem .4rem;
  border-radius: .3rem; border: 1px solid var(--line); border-left: .35rem solid var(--kind); }
.GLOBAL { --kind: #2b6cd4; } .THREAD { --kind: #5fa0ff; } .LOCAL { --kind: #17a2b8; }
.TENSOR { --kind: #d63aaf; } .GROUP { --kind: #2f9e44; } .LOOP { --kind: #868e96; }
.REDUCE { --kind: #e03131; } .UNROLL { --kind: #ae3ec9; } .UPCAST { --kind: #e8a200; }
.VECTOR { --kind: #f4d000; }
""".strip()


def page(shown: Explanation) -> str:
    """The whole page; the same explanation gives the same bytes."""
    road = shown.road
    title = escape(shown.title)
    n = len(road.kernels)
    head = f"{n} kernel{'' if n == 1 else 's'} for the device {escape(shown.device)}"
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>\n{_STYLE}\n</style>",
        "</head>",
        "<body>",
        f"<header><h1>{title}</h1>",
        f'<p class="dim">{escape(", ".join(shown.arguments))}</p>',
        f"<p>{head}.</p>",
        f"{_contents(road.kernels)}</header>",
        "<main>",
        *_expression(shown),
        *_fusion(shown),
        *[line for n, k in enumerate(road.kernels) for line in _kernel(n, k)],
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _contents(kernels: Sequence[KernelRoad]) -> str:
    links = [("expression", "Expression"), ("fusion", "Fusion")]
    links += [(f"kernel-{n}", k.kernel.name) for n, k in enumerate(kernels)]
    items = [f'<a href="#{at}">{escape(text)}</a>' for at, text in links]
    return f"<nav>{' · '.join(items)}</nav>"


def _expression(shown: Explanation) -> list[str]:
    parts = ['<section id="expression">', "<h2>Expression</h2>"]
    if shown.code:
        parts += [_numbered(shown.code, shown.first_line)]
    parts += [
        "<h3>As a graph of array operations</h3>",
        f"<pre>{escape(shown.road.expression)}</pre>",
        "</section>",
    ]
    return parts


def _fusion(shown: Explanation) -> list[str]:
    road = shown.road
    parts = ['<section id="fusion">', "<h2>Fusion</h2>"]
    if not road.kernels:
        return [*parts, "<p>No kernel: every result is in memory already.</p>", "</section>"]
    rows = [
        [f"%{d.place}" if d.place >= 0 else "", f"<code>{escape(d.value)}</code>", escape(d.text)]
        for d in road.decisions
    ]
    parts += ["<p>What became of each value, in the order of the graph:</p>"]
    parts += [_table(["", "value", "decision"], rows)]
    parts += ["<h3>Kernels</h3>"]
    rows = []
    for n, k in enumerate(road.kernels):
        counts = k.program.estimate
        rows.append(
            [
                f'<a href="#kernel-{n}">{escape(k.kernel.name)}</a>',
                _nest(k.kernel),
                f"{counts.flops:,}",
                f"{counts.bytes:,}",
                f"{k.intensity:.2f}",
                str(k.n_uses),
            ]
        )
    head = ["kernel", "nest", "flops", "bytes", "flops per byte", "launches"]
    return [*parts, _table(head, rows, numbers=(2, 3, 4, 5)), "</section>"]


def _kernel(number: int, road: KernelRoad) -> list[str]:
    counts = road.program.estimate
    parts = [
        f'<section id="kernel-{number}">',
        f"<h2>{escape(road.kernel.name)}</h2>",
        _nest(road.kernel),
        f"<p>{counts.flops:,} operations on {counts.bytes:,} bytes: {road.intensity:.2f} "
        f"operations per byte. {escape(road.launch)}</p>",
        "<h3>The schedule in words</h3>",
        _list(map(escape, road.kernel.explain())),
        "<h3>What it reads and writes</h3>",
        _table(
            ["", "access", "type", "strides by dim", "where"],
            [
                [r.way, f"<code>{escape(r.place)}</code>", *map(escape, r[2:])]
                for r in road.accesses
            ],
        ),
        "<h3>Stage by stage</h3>",
    ]
    for stage in road.stages:
        parts += _schedule(stage, road) if stage.name == "schedule" else _stage(stage)
    parts += ["<h3>Source</h3>", _numbered(road.source, 1), "</section>"]
    return parts


_TITLES = {
    "fuse": "the kernel as an expression of whole arrays",
    "index": "movement of elements becomes index arithmetic over dims",
    "schedule": "how the dims run",
    "lower": "loops, registers and lanes: the program as a list",
    "render": "text in the device's language",
}


def _stage(stage: Stage) -> list[str]:
    panes = [_pane("before", stage.before)] if stage.before else []
    panes += [_pane("after", stage.after)]
    return [
        f"<details><summary><strong>{stage.name}</strong> {_TITLES[stage.name]}"
        f'<span class="dim">{_rules(stage)}</span></summary>',
        f'<div class="panes">{"".join(panes)}</div>',
        *_fired(stage),
        "</details>",
    ]


def _schedule(stage: Stage, road: KernelRoad) -> list[str]:
    parts = [
        f"<details open><summary><strong>schedule</strong> {_TITLES['schedule']}"
        f'<span class="dim">: {_count(len(road.steps), "step")}{_rules(stage)}</span></summary>',
        "<h3>Why</h3>",
        _list(map(escape, road.why)),
    ]
    if road.steps:
        parts += ["<h3>Step by step</h3>", "<ol>", *map(_step, road.steps), "</ol>"]
    return [*parts, *_fired(stage), "</details>"]


def _step(step: Step) -> str:
    old = step.before.splitlines()
    lines = [
        f"<b>{escape(line)}</b>" if line not in old else escape(line)
        for line in step.after.splitlines()
    ]
    body = "\n".join(lines)
    return (
        f"<li><details><summary><code>{escape(step.opt)}</code></summary>"
        f'<div class="panes">{_pane("before", step.before)}'
        f"<div><h4>after</h4><pre>{body}</pre></div></div>"
        f"{_list(map(escape, step.sentences))}</details></li>"
    )


def _pane(title: str, text: str) -> str:
    return f"<div><h4>{title}</h4><pre>{escape(text)}</pre></div>"


def _rules(stage: Stage) -> str:
    n = sum(count for _, count in stage.rules)
    return f"; {_count(n, 'rewrite')}" if n else ""


def _fired(stage: Stage) -> list[str]:
    if not stage.rules:
        return []
    rows = [[f"<code>{escape(rule)}</code>", str(n)] for rule, n in stage.rules]
    return ["<h3>Rewrite rules that fired</h3>", _table(["rule", "times"], rows, numbers=(1,))]


def _nest(kernel: Kernel) -> str:
    """The axes in nest order, a box each."""
    boxes = [
        f'<span class="{a.kind.name}" title="{a.kind.name.lower()}">{escape(a.name)} '
        f"{a.kind.letter}{escape(axis_size(a))}</span>"
        for a in kernel.schedule.axes
    ]
    return f'<div class="nest">{"".join(boxes)}</div>'


def _numbered(text: str, first: int) -> str:
    lines = text.splitlines()
    width = len(str(first + len(lines)))
    shown = [f"<i>{n:>{width}} </i>{escape(line)}" for n, line in enumerate(lines, first)]
    return "<pre>{}</pre>".format("\n".join(shown))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Cells are HTML already."""
    top = "".join(f"<th>{escape(text)}</th>" for text in head)
    lines = []
    for row in rows:
        cells = [
            f'<td class="n">{cell}</td>' if n in numbers else f"<td>{cell}</td>"
            for n, cell in enumerate(row)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="wide"><table><tr>{top}</tr>\n{chr(10).join(lines)}</table></div>'


def _list(items: Iterable[str]) -> str:
    """Items are HTML already; nothing for none."""
    found = [f"<li>{item}</li>" for item in items]
    return f"<ul>{''.join(found)}</ul>" if found else ""


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
