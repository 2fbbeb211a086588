"""Picture: numbers become SVG, on the server. Its colours are in the stylesheet; its numbers are in the text, too."""

from math import ceil

from markupsafe import Markup

from discretion.ledger.chance import after


def dots(before: float, epsilon: float) -> Markup:
    """Return a hundred dots, of which as many are filled as somebody can believe at most of a hundred."""
    filled = min(100, ceil(100 * after(before, epsilon) - 1e-7))
    places = [f"M{10 * (place % 10) + 5} {10 * (place // 10) + 5}h0" for place in range(100)]
    return Markup(
        '<svg class="dots" viewBox="0 0 100 100" width="120" height="120" role="img" aria-label="{} of 100 dots">'
        '<path class="empty" d="{}"/><path class="full" d="{}"/></svg>'
    ).format(filled, "".join(places[filled:]), "".join(places[:filled]))


def allowance_bar(spent: float, allowance: float, label: str) -> Markup:
    """Return an allowance as a wide bar: what is used, and what is left."""
    used = 600 * spent / max(allowance, spent, 1e-12)
    part = Markup('<rect class="part" width="{:.1f}" height="28"/>').format(max(used, 3)) if used > 0 else ""
    return Markup(
        '<svg class="allowance" viewBox="0 0 600 28" preserveAspectRatio="none" width="600" height="28" role="img" '
        'aria-label="{}"><rect class="all" width="600" height="28"/>{}</svg>'
    ).format(label, part)
