"""Sheets are shown by terminals (test_render.py) and by notebooks: nothing in them is taken for markup."""

from discretion.render.sheet import Sheet, amount, to_html, when


def test_a_notebook_shows_title_table_and_notes_as_they_are():
    sheet = Sheet(title="a < b", columns=("who", "n"), rows=(("<i>", "1"),), notes=("x & y",), numbers=frozenset({"n"}))
    html = to_html([sheet])
    for part in ("<b>a &lt; b</b>", "<td>&lt;i&gt;</td>", '<td style="text-align: right">1</td>', "x &amp; y"):
        assert part in html, part


def test_what_a_sheet_does_not_have_takes_no_place():
    assert "<div><div><b>t</b></div></div>" == to_html([Sheet(title="t")])


def test_amounts_have_every_micro_epsilon_and_times_every_minute():
    assert ("1,000.000001", "2026-01-02 03:04") == (amount(1000.000001), when("2026-01-02T03:04:05"))
