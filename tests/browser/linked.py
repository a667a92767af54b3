"""Checks of selection, search, printing and accessibility that the page and the viewer share. Each takes an open page
and a function that records what holds.
"""

from devtools import CONTROL

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
    shown = page.value("[...document.querySelectorAll('#rank-table tbody tr')].map(r => [Number(r.dataset.rank), Number(r.cells[3].dataset.value) + Number(r.cells[4].dataset.value)])")
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
        check("calls that are not loaded are labelled as those of the run",
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
        page.click(left + 20, first + height, modifiers=CONTROL)
        two = page.value("gammachi.view.rows.slice(0, 2).map(r => r.rank)")
        check("Ctrl adds a rank", page.value(SELECTED)[1] == sorted(set(two)) or two[0] == two[1], page.value(SELECTED))
    page.key("z")
    check("Z zooms to it", page.value("gammachi.view.to - gammachi.view.from") < length * 0.7)
    page.key("Escape")
    check("Escape clears", page.value("gammachi.selection.isEmpty && document.getElementById('selection').hidden"))
    page.key("0")
    page.key("s")
    check("S selects what is visible", page.value(SELECTED)[0] == [0, length])
    clear(page)
    before = page.value("[...document.querySelectorAll('#rank-table tbody tr, #call-table tbody tr')].map(r => r.textContent)")
    page.value("gammachi.selection.set({time: [0, gammachi.source.length_s / 3]})")
    clear(page)
    after = page.value("[...document.querySelectorAll('#rank-table tbody tr, #call-table tbody tr')].map(r => r.textContent)")
    check("after clearing, the tables are as before", before == after)


def panels(check, page):
    """Clicking a row selects what it shows; clicking a column head sorts."""
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
    check("pairs are those of the rank", all(str(first) in row[:2] for row in pairs), pairs[:3])
    waits = page.value("[...document.querySelectorAll('#wait-table tbody tr')].filter(r => !r.hidden).map(r => r.dataset.ranks)") or []
    inside = page.value(f"[...document.querySelectorAll('#wait-table tbody tr')].filter(r => !r.hidden).every(r => ranksOf(r.dataset.ranks).has({first}))")
    check("causes are those of the rank", inside or not waits, waits[:3])
    clear(page)
    if visible(page, "wait-table"):
        page.value("document.querySelector('#wait-table .pick').click()")
        page.settle()
        chosen = page.value(SELECTED)
        check("a cause selects its waits", chosen[3] is not None and "waiting" in page.value(FIGURES), page.value(FIGURES))
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
            check("a cell of the matrix selects sender and receiver", spot[2] == "host" or page.value(SELECTED)[1] == [0, 1], page.value(SELECTED))
            clear(page)
    longest = page.value("document.querySelectorAll('#longest-table tbody tr').length")
    if longest and page.value("gammachi.source.waits.length"):
        heads = page.value("[...document.querySelectorAll('#longest-table th')].map(h => h.textContent)")
        check("the longest waits name the rank that they waited for", "waited for" in heads, heads)


def search(check, page):
    """The search field finds functions, sites, regions and ranks, and selects them by keyboard."""
    rank = page.value("gammachi.source.rows.at(-1).rank")
    page.key("/")
    check("/ goes to the search", page.value("document.activeElement.id") == "search")
    page.call("Input.insertText", text=str(rank))
    page.settle()
    check("hits are announced", page.value("document.getElementById('search').getAttribute('aria-expanded')") == "true")
    hits = page.value("[...document.querySelectorAll('#search-hits li')].map(l => l.textContent)")
    check("a rank is found", any(f"rank {rank}" in hit for hit in hits), hits)
    page.key("Enter")
    check("Enter selects it", page.value(SELECTED)[1] == [rank], page.value(SELECTED))
    clear(page)
    name = page.value("document.querySelector('#call-table tr[data-function]')?.dataset.function")
    if name:
        page.key("/")
        page.call("Input.insertText", text=name.lower())
        page.key("Enter")
        check("a function is found and selected", page.value(SELECTED)[4] == name, page.value(SELECTED))
    clear(page)
    page.key("/")
    page.call("Input.insertText", text="no such thing")
    page.key("Enter")
    check("an unknown text selects nothing", page.value("gammachi.selection.isEmpty"))
    page.key("Escape")


def address(check, page, path):
    """Selection, zoom and sorting are part of the address and are restored from it."""
    has = page.value("!!gammachi.view")
    page.value("gammachi.selection.set({time: [gammachi.source.length_s * 0.2, gammachi.source.length_s * 0.5], ranks: new Set([gammachi.source.rows[0].rank])})")
    if has:
        page.value("gammachi.move(gammachi.source.length_s * 0.1, gammachi.source.length_s * 0.6)")
    page.value("document.querySelectorAll('#call-table th button')[2].click()")
    page.value("new Promise(done => setTimeout(done, 400))")
    hash_ = page.value("location.hash")
    wanted = page.value(SELECTED)
    view = page.value("gammachi.view && [gammachi.view.from, gammachi.view.to]")
    check("the address has the selection", "time=" in hash_ and "sort=" in hash_, hash_)
    page.value("gammachi.selection.clear()")
    page.call("Page.navigate", url="about:blank")
    page.events[:] = [event for event in page.events if event.get("method") != "Page.loadEventFired"]
    url = path if path.startswith("http") else f"file://{path}"
    page.call("Page.navigate", url=url + hash_)
    page.wait_for("Page.loadEventFired")
    # Ignore the page itself, which is requested again on purpose.
    page.events[:] = [event for event in page.events if not (event.get("method") == "Network.requestWillBeSent"
                                                             and event["params"].get("type") == "Document")]
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
    order = []
    for _ in range(6):
        for kind in ("rawKeyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        order.append(page.value("document.activeElement.tagName"))
    check("Tab goes from control to control", "BUTTON" in order, order)
    ring = page.value("(() => { const b = document.getElementById('help-open'); b.focus(); return getComputedStyle(b).outlineStyle })()")
    check("the focus is visible", ring != "none", ring)


def looks(check, page, shots):
    """Dark and light colours, print, and widths."""
    ground = lambda: page.value("getComputedStyle(document.body).backgroundColor")
    page.media(dark=False)
    light = ground()
    page.media(dark=True)
    dark = ground()
    check("it follows the system's colours", light != dark, (light, dark))
    page.media(dark=False)
    seen = []
    for _ in range(3):
        page.value("document.getElementById('theme').click()")
        page.settle()
        seen.append((page.value("document.getElementById('theme').getAttribute('aria-label')"), ground()))
    check("the switch cycles through light and dark", [colour for _, colour in seen] == [light, dark, light], seen)
    pdf = page.printed()
    check("it prints", pdf.startswith(b"%PDF") and len(pdf) > 5000, len(pdf))
    if shots:
        with open(f"{shots}-print.pdf", "wb") as file:
            file.write(pdf)
        page.media(kind="print")
        page.settle()
        page.screenshot(f"{shots}-print.png", whole=True)
        page.media()
    for width, height in WIDTHS:
        page.resize(width, height)
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
    """Everything that a screen reader reads has a role and a name."""
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
    check("heads have a scope", unscoped == 0, unscoped)
