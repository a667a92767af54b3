"""Checks that the page and the viewer share: of selection, search, address, keyboard, looks, paper and names. Each takes
`Checks`, which counts and prints what fails, and an open page.
"""

import os
import re
import subprocess
import tempfile
import unicodedata

from browser import CONTROL

class Checks:
    """Prints what fails, and counts it."""

    def __init__(self):
        self.failed = 0

    def __call__(self, what, holds, found=None):
        if not holds:
            self.failed += 1
            print(f"FAILED {what}" + (f": {found!r}" if found is not None else ""))


WIDTHS = [(800, 900), (1400, 900), (2560, 1300)]
FIGURES = "document.querySelector('#selection [data-figures]').textContent"
SELECTED = "(() => { const s = gammachi.selection; return [s.time, s.ranks && [...s.ranks].sort((a, b) => a - b), s.region, s.cause, s.fn] })()"


def visible(page, table):
    """Cells of the visible rows of a table; None if there is no such table."""
    return page.value(f"(() => {{ const t = document.getElementById('{table}'); return t && [...t.tBodies[0].rows]"
                      ".filter(r => !r.hidden).map(r => [...r.cells].map(c => c.dataset.value ?? c.textContent)) })()")


def canvas(page):
    """Scrolls to the timeline and returns its left, top, width and height."""
    page.value("document.querySelector('#timeline canvas').scrollIntoView({block: 'center'})")
    page.settle()
    return page.value("(() => { const b = document.querySelector('#timeline canvas').getBoundingClientRect();"
                      " return [b.left, b.top, b.width, b.height] })()")


def clear(page):
    page.value("gammachi.selection.clear()")
    page.settle()


def timeline(check, page, shots):
    """A drag selects a time, the margin selects ranks; the figures are the sums over the selection."""
    page.value("gammachi.view.scroll = 0; gammachi.move(0, gammachi.source.length_s)")
    clear(page)
    left, top, width, _ = canvas(page)
    plot = lambda part: left + 92 + part * (width - 92)
    page.drag((plot(0.25), top + 45), (plot(0.75), top + 47))
    time, ranks, *_ = page.value(SELECTED)
    length = page.value("gammachi.source.length_s")
    check("a drag selects a time", time and abs(time[0] - length / 4) < length / 100 and abs(time[1] - length * 3 / 4) < length / 100, time)
    page.value("new Promise(done => { const look = () => gammachi.panels.figures.time(gammachi.selection).final ? done(1) : setTimeout(look, 50); look() })")
    page.settle()
    check("and the bar shows its figures", "in MPI" in page.value(FIGURES), page.value(FIGURES))
    shown = page.value("[...document.querySelectorAll('#rank-table tbody tr')].map(r => [Number(r.dataset.rank), ['compute_s', 'lost_s'].reduce((sum, key) => sum + Number(r.querySelector(`[data-key=${key}]`).dataset.value), 0)])")
    known = page.value("""Object.fromEntries(gammachi.source.rows.filter(r => !r.thread).map(r => [r.rank,
      Math.max(0, Math.min(r.end_s, gammachi.selection.time[1]) - Math.max(r.begin_s, gammachi.selection.time[0]))]))""")
    if page.value("!!gammachi.source.computing"):
        wrong = [(rank, sum_, known[str(rank)]) for rank, sum_ in shown if abs(sum_ - known[str(rank)]) > 0.02 * length + 1e-9]
        check("computing and lost add up to each rank's time in it", not wrong, wrong[:3])
    whole = page.value("(() => { const f = gammachi.panels.figures, s = gammachi.selection; return [f.knowsCalls(s), [...(f.calls(s) ?? [])].map(([n, c]) => [n, c.count])] })()")
    calls = visible(page, "call-table")
    if whole[0]:
        counts = {name: count for name, count in whole[1] if count}
        check("the calls are those of the selection", {row[0]: float(row[2]) for row in calls if len(row) > 2} == counts, counts)
    else:
        check("calls that are not loaded are marked as those of the run",
              "whole run" in page.value("document.querySelector('#call-table').closest('section').querySelector('[data-scope]').textContent"))
    if shots:
        page.screenshot(f"{shots}-selected.png")
    first = top + 38 + page.value("gammachi.view.rowHeight") / 2
    page.click(left + 20, first)
    rank = page.value("gammachi.view.rows[0].rank")
    check("a click on a row's name selects its rank", page.value(SELECTED)[1] == [rank], page.value(SELECTED))
    pressed = page.value("[...document.querySelectorAll('#rank-table .pick[aria-pressed=true]')].map(b => Number(b.textContent))")
    check("and its row in the table", pressed in ([rank], []), pressed)
    page.click(left + 20, first)
    check("a second click deselects it", page.value(SELECTED)[1] is None)
    if page.value("gammachi.view.rows.length") > 1:
        height = page.value("gammachi.view.rowHeight")
        page.click(left + 20, first)
        page.click(left + 20, first + height, CONTROL)
        two = page.value("gammachi.view.rows.slice(0, 2).map(r => r.rank)")
        check("Ctrl adds a rank", page.value(SELECTED)[1] == sorted(set(two)) or two[0] == two[1], page.value(SELECTED))
    page.key("z")
    check("Z zooms to it", page.value("gammachi.view.to - gammachi.view.from") < length * 0.7)
    page.key("Escape")
    check("Escape clears", page.value("gammachi.selection.isEmpty && document.getElementById('selection').hidden"))
    page.key("0")
    page.key("s")
    check("S selects the visible time", page.value(SELECTED)[0] == [0, length])
    clear(page)
    before = page.value("[...document.querySelectorAll('#rank-table tbody tr, #call-table tbody tr')].map(r => r.textContent)")
    page.value("gammachi.selection.set({time: [0, gammachi.source.length_s / 3]})")
    clear(page)
    after = page.value("[...document.querySelectorAll('#rank-table tbody tr, #call-table tbody tr')].map(r => r.textContent)")
    check("clearing restores the tables", before == after)


def panels(check, page):
    """A click on a row selects what it shows; a click on a heading sorts."""
    clear(page)
    for head in range(page.value("document.querySelectorAll('#rank-table th button').length")):
        page.value(f"document.querySelectorAll('#rank-table th button')[{head}].click()")
        column, direction = page.value("(() => { const h = document.querySelector('#rank-table th[aria-sort]'); return [h.cellIndex, h.ariaSort] })()")
        values = [row[column] for row in visible(page, "rank-table")]
        try:
            wanted = sorted((float(value) for value in values if value != ""), reverse=True)
            sorted_ = [float(value) for value in values if value != ""] == wanted
        except ValueError:
            sorted_ = True
        check(f"column {column} of the ranks sorts", sorted_ and direction == "descending", values[:4])
    page.value("document.querySelectorAll('#rank-table th button')[0].click(); document.querySelectorAll('#rank-table th button')[0].click()")
    ranks = [float(row[0]) for row in visible(page, "rank-table")]
    check("a second click sorts upwards", ranks == sorted(ranks), ranks[:4])
    page.value("document.querySelector('#rank-table .pick').click()")
    page.settle()
    first = page.value("Number(document.querySelector('#rank-table tbody tr').dataset.rank)")
    check("a rank's row selects it", page.value(SELECTED)[1] == [first])
    pairs = visible(page, "pair-table") or []
    check("pairs are those of the rank", all(first in map(float, row[:2]) for row in pairs), pairs[:3])
    waits = page.value("[...document.querySelectorAll('#wait-table tbody tr')].filter(r => !r.hidden).map(r => r.dataset.ranks)") or []
    inside = page.value(f"[...document.querySelectorAll('#wait-table tbody tr')].filter(r => !r.hidden).every(r => ranksOf(r.dataset.ranks).has({first}))")
    check("causes are those of the rank", inside or not waits, waits[:3])
    clear(page)
    if visible(page, "wait-table"):
        page.value("document.querySelector('#wait-table .pick').click()")
        page.settle()
        chosen = page.value(SELECTED)
        check("a cause selects its waits", chosen[3] is not None and "waiting" in page.value(FIGURES), page.value(FIGURES))
        delayed_by = page.value("document.querySelector('#wait-table tbody tr').dataset.delayed_by ?? null")
        ranks = page.value("[...gammachi.selection.causeRanks ?? []]")
        check("and its delaying rank", delayed_by is None or int(delayed_by) in ranks, (delayed_by, ranks))
        check("and is pressed in the summary, too", page.value("document.querySelectorAll('button[data-cause][aria-pressed=true]').length") <= 1)
        clear(page)
    if visible(page, "region-table"):
        page.value("document.querySelector('#region-table .pick').click()")
        page.settle()
        name = page.value("document.querySelector('#region-table tbody tr').dataset.region")
        check("a region selects its time", page.value(SELECTED)[2] == name and "row" in page.value(FIGURES), page.value(FIGURES))
        clear(page)
    if page.value("!!document.querySelector('#call-table .pick')"):
        page.value("document.querySelector('#call-table .pick').click()")
        page.settle()
        name = page.value("gammachi.selection.fn")
        rows = visible(page, "call-table")
        check("a function keeps only its own row", [row[0] for row in rows] == [name], rows)
        clear(page)
    if page.value("!!document.querySelector('svg[data-places]')"):
        spot = page.value("""(() => { const s = document.querySelector('figure:not([hidden]) svg[data-places]'); s.scrollIntoView({block: 'center'});
          const d = s.dataset, cell = d.edge / d.places;
          const p = new DOMPoint(Number(d.left) + cell * 1.5, Number(d.top) + cell / 2).matrixTransform(s.getScreenCTM());
          return [p.x, p.y, d.of, Number(d.places)] })()""")
        if spot[3] > 1:
            page.click(*spot[:2])
            both = page.value("[0, 1].filter(rank => gammachi.source.rows.some(row => row.rank === rank))")
            check("a cell of the matrix selects sender and receiver", spot[2] == "host" or page.value(SELECTED)[1] == both, page.value(SELECTED))
            clear(page)
    longest = page.value("document.querySelectorAll('#longest-table tbody tr').length")
    if longest and page.value("gammachi.source.waits.length"):
        heads = page.value("[...document.querySelectorAll('#longest-table th')].map(h => h.textContent)")
        check("the longest waits name the rank that delayed them", "delayed by" in heads, heads)


def search(check, page):
    """The search field finds functions, sites, regions and ranks, and Enter selects them."""
    rank = page.value("gammachi.source.rows.at(-1).rank")
    page.key("/")
    check("/ goes to the search", page.value("document.activeElement.id") == "search")
    page.type(str(rank))
    check("hits are announced", page.value("document.getElementById('search').getAttribute('aria-expanded')") == "true")
    hits = page.value("[...document.querySelectorAll('#search-hits li')].map(l => l.textContent)")
    check("a rank is found", any(f"rank {rank}" in hit for hit in hits), hits)
    page.key("Enter")
    check("Enter selects it", page.value(SELECTED)[1] == [rank], page.value(SELECTED))
    clear(page)
    name = page.value("document.querySelector('#call-table tr[data-function]')?.dataset.function")
    if name:
        page.key("/")
        page.type(name.lower())
        page.key("Enter")
        check("a function is found and selected", page.value(SELECTED)[4] == name, page.value(SELECTED))
    clear(page)
    page.key("/")
    page.type("no such thing")
    page.key("Enter")
    check("what is not found selects nothing", page.value("gammachi.selection.isEmpty"))
    page.key("Escape")


def address(check, page, path):
    """The address holds selection, zoom and sorting, and restores them."""
    has = page.value("!!gammachi.view")
    page.value("gammachi.selection.set({time: [gammachi.source.length_s * 0.2, gammachi.source.length_s * 0.5], ranks: new Set([gammachi.source.rows[0].rank])})")
    if has:
        page.value("gammachi.move(gammachi.source.length_s * 0.1, gammachi.source.length_s * 0.6)")
    page.value("document.querySelectorAll('#call-table th button')[2].click()")
    page.value("new Promise(done => setTimeout(done, 400))")
    hash_ = page.value("location.hash")
    wanted = page.value(SELECTED)
    view = page.value("gammachi.view && [gammachi.view.from, gammachi.view.to]")
    check("the address holds the selection", "time=" in hash_ and "sort=" in hash_, hash_)
    page.value("gammachi.selection.clear()")
    page.open("about:blank")
    page.open(path + hash_)
    wait_for_panels(page)
    page.settle()
    near = lambda a, b: a == b or (a and b and all(abs(x - y) < 1e-6 * max(abs(x), 1e-9) + 1e-12 for x, y in zip(a, b)))
    found = page.value(SELECTED)
    check("the selection is restored", near(found[0], wanted[0]) and found[1:] == wanted[1:], (found, wanted))
    check("so does the zoom", near(page.value("gammachi.view && [gammachi.view.from, gammachi.view.to]"), view))
    check("and the order of the calls", page.value("document.querySelectorAll('#call-table th')[2].ariaSort") == "descending")
    clear(page)


def wait_for_panels(page):
    page.value("new Promise(done => { const look = () => window.gammachi?.panels ? done(1) : setTimeout(look, 50); look() })")


def keyboard(check, page, shots):
    page.value("document.activeElement.blur()")
    page.key("?")
    check("? opens the help", page.value("document.getElementById('help').open"))
    if shots:
        page.screenshot(f"{shots}-help.png")
    page.key("Escape")
    check("Escape closes it", not page.value("document.getElementById('help').open"))
    page.value("document.getElementById('theme').focus()")
    focused = []
    for _ in range(6):
        page.key("Tab")
        focused.append(page.value("[document.activeElement.tagName, getComputedStyle(document.activeElement).outlineStyle]"))
    check("Tab goes from control to control", "BUTTON" in [tag for tag, _ in focused], focused)
    check("the focus is visible", all(ring != "none" for tag, ring in focused if tag != "BODY"), focused)


def looks(check, page, shots):
    """Dark and light colours, and widths."""
    ground = lambda: page.value("getComputedStyle(document.body).backgroundColor")
    page.colours(dark=False)
    light = ground()
    page.colours(dark=True)
    dark = ground()
    check("it follows the system's colours", light != dark, (light, dark))
    page.colours(dark=False)
    seen = []
    for _ in range(3):
        page.value("document.getElementById('theme').click()")
        page.settle()
        seen.append((page.value("document.getElementById('theme').getAttribute('aria-label')"), ground()))
    check("the switch goes through light and dark and back", [colour for _, colour in seen] == [light, dark, light], seen)
    for width, height in WIDTHS:
        page.resize(width, height)
        page.settle()
        page.value("scrollTo(0, 0)")
        page.settle()
        over = page.value("document.documentElement.scrollWidth - innerWidth")
        check(f"{width} pixels do not overflow", over <= 0, over)
        cut = page.value("""[...document.querySelectorAll('main *')].filter(e => e.clientWidth && !e.closest('.scroll, svg, .hidden')
          && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + '.' + e.className).slice(0, 3)""")
        check(f"nothing is cut at {width} pixels", not cut, cut)
        bottom = page.value("document.getElementById('summary').getBoundingClientRect().bottom")
        check(f"the summary fits a screen of {width} × {height}", bottom <= height or page.value("!!document.getElementById('damage')"), bottom)
        if shots:
            page.screenshot(f"{shots}-{width}.png")
            page.screenshot(f"{shots}-{width}-whole.png", whole=True)
    page.resize(1280, 900)


def names(check, page):
    """Everything that a screen reader meets has a role and a name."""
    tree = page.accessible()
    nameless = [role for role, name in tree if not name and role in
                ("button", "textbox", "searchbox", "combobox", "table", "region", "application", "image", "img", "dialog", "toolbar", "columnheader")]
    # Heads of columns that contain only words may be empty.
    check("every control, table and picture has a name", not nameless, nameless[:5])
    roles = {role for role, _ in tree}
    check("landmarks exist", {"main", "banner", "contentinfo"} <= roles, sorted(roles))
    ids = page.value("(() => { const all = [...document.querySelectorAll('[id]')].map(e => e.id); return all.filter((id, i) => all.indexOf(id) !== i) })()")
    check("no id occurs twice", ids == [], ids)
    live = page.value("document.querySelector('#selection [data-figures]').getAttribute('aria-live')")
    check("the selection's figures are announced", live == "polite")
    unscoped = page.value("[...document.querySelectorAll('th')].filter(h => !h.scope).length")
    check("every heading of a table has a scope", unscoped == 0, unscoped)


def paper(check, page, report, shots):
    """Printed: black on white, nothing cut, no controls, every row of the tables."""
    page.colours(dark=True)
    page.settle()
    pdf = page.printed()
    page.colours(dark=False)
    with tempfile.TemporaryDirectory() as place:
        path = f"{shots}-print.pdf" if shots else os.path.join(place, "page.pdf")
        with open(path, "wb") as file:
            file.write(pdf)
        read = lambda *command: subprocess.run(command, check=True, capture_output=True).stdout
        boxes = read("pdftotext", "-bbox", path, "-").decode()
        sheets = [tuple(map(float, size)) for size in re.findall(r'<page width="([\d.]+)" height="([\d.]+)"', boxes)]
        # Letters that were set as one (a ligature of two f) are letters again.
        boxes = unicodedata.normalize("NFKC", boxes)
        words = re.findall(r'<word xMin="([-\d.]+)" yMin="[-\d.]+" xMax="([-\d.]+)" yMax="[-\d.]+">(.*?)</word>', boxes)
        ranks = min(256, len(report["ranks"]))
        check("it fits few sheets", 1 <= len(sheets) <= 8 + ranks / 8, len(sheets))
        cut = [word for left, right, word in words if float(left) < 0 or float(right) > sheets[0][0]]
        check("no word is cut by the edge of the paper", not cut, cut[:5])
        text = " ".join(word for *_, word in words)
        check("the verdict is on paper", len(text) > 200 and report["verdict"][0].split()[0] in text, text[:200])
        controls = [name for name in ("Whole run", "Zoom to it", "Search", "Matrix shows") if name in text]
        check("no controls are on paper", not controls, controls)
        missing = [call["function"] for call in report["calls"] if call["function"] not in text]
        check("every function is on paper", not missing, missing)
        image = read("pdftoppm", "-gray", "-r", "20", path)
        shades = sorted(image[-len(image) // 2:])
        check("the paper is white", shades[len(shades) // 2] >= 250, shades[len(shades) // 2])
