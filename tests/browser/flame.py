"""Checks of the flame graph, which page and viewer share."""

import math

import linked

NOTE = "document.querySelector('[data-flame=note]').textContent"
FRAMES = "document.querySelectorAll('[data-flame=frames] > *')"
ZOOMED = "gammachi.panels.flame.zoomed.name"
# The sums of all ranks, or of one: by function name, place, self, total and error; what lies outside functions.
SUMS = """(ranks => { const s = gammachi.source.samplesIn(null), u = s.sums(new Map(ranks.map(rank => [rank, null])));
  return { functions: [...u.functions.values()].map(f => [s.functions[f.index].name, f.self_s, f.total_s, Math.sqrt(f.variance)]),
    sampled_s: u.sampled_s, kernel_s: u.kernel_s, lost_s: u.lost_s } })"""
# Two made runs of one thread each: samples in the functions f and g that main calls; g is merged if `other` says so.
MADE = """((a, b, other) => { const side = (counts, n) => { const samples = new Samples({ from_s: 0, to_s: 1, bins: 1, callers: [-1, 0, 0],
    frames: [0, 1, n === other ? -2 : 2], merged: n === other ? [[2, 1]] : [], functions: ["main", "f", "g"].map((name, n) => [n, name, "a.c", 0]), threads: [[0, 0, 0.01]],
    cells: btoa(String.fromCharCode(2, ...counts.flatMap((n, path) => [1, path + 1, n & 127 | 128, n >> 7]))), ranks: [] });
    return { samples, sums: samples.sums(new Map([[0, null]])), scale: 1 } };
  return Object.fromEntries(new CodeTree([side(a, 0), side(b, 1)]).nodes().map(n => [n.name, [Boolean(n.isCertain), n.difference, n.width]])) })"""


def by_chance(successes, trials, probability):
    """The exact two-sided binomial test."""
    term = lambda k: math.exp(math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
                              + k * math.log(probability) + (trials - k) * math.log1p(-probability))
    least, most = sum(map(term, range(successes, trials + 1))), sum(map(term, range(successes + 1)))
    return min(1, 2 * min(least, most))


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def flame(check, page, report, shots):
    has = page.value("!!document.getElementById('flame')")
    check("sampled code has a flame graph", has == bool(report.get("code")), has)
    if not has:
        return
    linked.clear(page)
    page.value("new Promise(done => { const look = () => gammachi.source.samplesIn(null) && gammachi.panels.flame.tree ? done(1) : setTimeout(look, 50); look() })")
    page.settle()
    agreement(check, page, report)
    drawing(check, page)
    keys(check, page)
    stretch(check, page)
    compared(check, page, shots)
    if shots:
        pictures(page, shots)
    linked.clear(page)


def agreement(check, page, report):
    """The sums of the flame graph are those of the report."""
    ranks = sorted({row["rank"] for row in report["code"]} - {None})
    for rank in [None, *ranks]:
        found = page.value(f"{SUMS}({ranks if rank is None else [rank]})")
        rows = [row for row in report["code"] if row["rank"] == rank]
        wanted = sorted((row["function"] or "unknown function", row["self_s"], row["total_s"], row["error_s"])
                        for row in rows if row["kind"] == "function")
        functions = sorted(map(tuple, found["functions"]))
        same = len(functions) == len(wanted) and all(
            a[0] == b[0] and all(map(close, a[1:], b[1:])) for a, b in zip(functions, wanted))
        check(f"functions of rank {rank} have the times of report --json", same, (functions[:3], wanted[:3]))
        of = lambda kind: sum(row["self_s"] for row in rows if row["kind"] == kind)
        outside = all(close(found[f"{kind}_s"], of(kind)) for kind in ("kernel", "lost"))
        check(f"so has what is not sampled on rank {rank}", outside, found)
        check(f"and their sum on rank {rank}", close(found["sampled_s"], of("function")), found["sampled_s"])


def drawing(check, page):
    """Every path is drawn, or counted where it is too narrow."""
    nodes, drawn, merged = page.value("""(() => { const f = gammachi.panels.flame; return [f.tree.nodes().length - 1,
      f.frames.filter(frame => frame.node).length, f.frames.reduce((all, frame) => all + (frame.merged ?? 0), 0)] })()""")
    check("every path is drawn or counted", nodes == drawn + merged and drawn > 2, (nodes, drawn, merged))
    outside = page.value("""gammachi.panels.flame.frames.filter(frame => { const above = gammachi.panels.flame.frames.find(
      one => one.node && one.node === (frame.node?.parent ?? frame.caller)) ?? { left: 0, width: 1 };
      return frame.left < above.left - 1e-9 || frame.left + frame.width > above.left + above.width + 0.01 }).length""")
    check("what is called lies below its caller", outside == 0, outside)
    names = page.value(f"[...{FRAMES}].map(e => e.title)")
    check("frames say their time and its error", any(" ± " in name and "% of computing" in name for name in names), names[:3])


def keys(check, page):
    """The keyboard goes along callers, zooms and comes back; a name is found."""
    page.value("document.querySelector('[data-flame=frames] [tabindex=\"0\"]').focus()")
    focused = lambda: page.value("document.activeElement.textContent")
    first = focused()
    page.key("ArrowDown")
    second = focused()
    check("the arrow goes to what is called", second != first, (first, second))
    page.key("ArrowUp")
    check("and back to the caller", focused() == first, focused())
    page.key("ArrowDown")
    page.key("Enter")
    zoomed = page.value(ZOOMED)
    check("Enter zooms", zoomed != "" and zoomed in focused(), (zoomed, focused()))
    page.key("Backspace")
    check("Backspace goes back", page.value(ZOOMED) == "", page.value(ZOOMED))
    page.key("ArrowDown")
    page.key("Enter")
    page.key("Escape")
    check("Escape shows all code", page.value(ZOOMED) == "" and focused() != "", focused())
    name = page.value("gammachi.source.samplesIn(null).functions[0].name")
    find = lambda text: page.value(f"(() => {{ const f = document.querySelector('[data-flame=find]'); f.value = {text!r}; f.dispatchEvent(new Event('input')) }})()")
    find(name.upper())
    found = page.value(f"[...{FRAMES}].filter(e => e.classList.contains('found')).map(e => e.title)")
    check("a name is found in any case", found and all(name in title for title in found), found[:3])
    find("")


def stretch(check, page):
    """A click where a row computes selects that time, with its functions."""
    if not page.value("!!gammachi.view && gammachi.source.covers(0, gammachi.source.length_s)"):
        return
    spot = page.value("""(() => { const t = gammachi, s = t.source, n = 400, all = [...Array(n).keys()].map(k => t.computingAt(0, s.length_s * (k + 0.5) / n));
      const one = all.filter(Boolean).sort((a, b) => (b[1] - b[0]) - (a[1] - a[0]))[0];
      if (!one) return null;
      t.move(one[0] - (one[1] - one[0]) / 4, one[1] + (one[1] - one[0]) / 4);
      return [...one, t.painter.x(t.view, (one[0] + one[1]) / 2), t.painter.middle(t.view, t.view.rows.findIndex(r => r.index === 0))] })()""")
    if not spot:
        return
    left, top, *_ = linked.canvas(page)
    page.click(left + spot[2], top + spot[3])
    time, ranks, *_ = page.value(linked.SELECTED)
    rank = page.value("gammachi.source.rows[0].rank")
    check("a click where a row computes selects it", time == spot[:2] and ranks == [rank], (time, ranks))
    detail = page.value("document.querySelector('[data-detail]').textContent")
    check("and says what it computes", "computes" in detail, detail)
    page.value("new Promise(done => { const look = () => gammachi.source.samplesIn(gammachi.selection.time) ? done(1) : setTimeout(look, 50); look() })")
    page.settle()
    table = page.value("[...document.querySelectorAll('#code-table tbody tr')].filter(r => !r.hidden && r.dataset.number !== undefined).map(r => Number(r.querySelector('[data-key=self_s]').dataset.value))")
    sampled = page.value("gammachi.panels.flame.tree.all.total_s[0]")
    check("the table has the same time", close(sum(table), sampled), (sum(table), sampled))
    check("which is no longer than the stretch", 0 <= sampled <= spot[1] - spot[0] + 0.1, (sampled, spot))
    linked.clear(page)
    page.value("gammachi.move(0, gammachi.source.length_s)")


def compared(check, page, shots):
    """Only differences that are not chance are marked as such."""
    cases = [(3, 4, 0.5), (0, 9, 0.5), (40, 100, 0.25), (3, 3, 1 / 64), (126, 126, 63 / 64), (500, 900, 0.5), (0, 0, 0.5)]
    for case in cases:
        found = page.value(f"byChance({case[0]}, {case[1]}, {case[2]})")
        check(f"probability of {case}", math.isclose(found, by_chance(*case), rel_tol=1e-9), (found, by_chance(*case)))
    longer = page.value(f"{MADE}([200, 300], [600, 305])")
    check("what takes longer is marked, with its callers", [longer[name][0] for name in ("main", "f", "g")] == [True, True, False], longer)
    check("differences are those of B to A", close(longer["f"][1], 4) and close(longer["g"][1], 0.05), longer)
    check("a path is as wide as the longer of both", close(longer["main"][2], 6 + 3.05), longer)
    equal = page.value(f"{MADE}([200, 300], [215, 290])")
    check("what may be chance is not", not any(certain for certain, *_ in equal.values()), equal)
    merged = page.value(f"{MADE}([200, 300], [205, 310], 1)")
    check("nor what one side has merged", not merged["g"][0] and not merged["(other paths)"][0], merged)
    ranks = page.value("[...new Set(gammachi.source.rows.map(r => r.rank))]")
    if len(ranks) < 2:
        return
    page.value(f"gammachi.selection.set({{ ranks: new Set([{ranks[-1]}]) }})")
    choose = lambda value: page.value(f"(() => {{ const s = document.querySelector('[data-flame=against]'); s.value = {value!r}; s.dispatchEvent(new Event('change')) }})()")
    choose("others")
    page.settle()
    note = page.value(NOTE)
    check("two selections are named", "A: " in note and "B, the selection: 1 rank" in note, note)
    texts = page.value(f"[...{FRAMES}].filter(e => !e.matches('.special, .merged') && e.textContent).map(e => [e.className, e.textContent])")
    signs = {"longer": "+", "shorter": "−", "same": "≈"}
    wrong = [(kind, text) for kind, text in texts for name, sign in signs.items() if name in kind.split() and sign not in text]
    check("every difference has a sign", texts and not wrong, wrong)
    if shots:
        page.value("document.getElementById('flame').scrollIntoView()")
        page.settle()
        page.screenshot(f"{shots}-difference.png")
    page.value("document.querySelector('[data-flame=keep]').click(); gammachi.selection.clear()")
    page.settle()
    check("a selection that is kept is compared", f"rank {ranks[-1]}" in page.value("document.querySelector('[data-flame=against]').selectedOptions[0].textContent"), page.value(NOTE))
    choose("")


def pictures(page, shots):
    for width, dark in ((1400, False), (1400, True), (400, False)):
        page.resize(width, 900)
        page.colours(dark)
        page.value("document.getElementById('flame').scrollIntoView()")
        page.settle()
        page.screenshot(f"{shots}-flame-{width}{'-dark' if dark else ''}.png")
    page.colours(False)
    page.resize(1280, 900)
