"""What one person gets to see: a receipt, and what a change of mind did."""

from discretion.ledger import Receipt, Use
from discretion.ledger.receipt import SECRETS, factor
from discretion.render.terminal import Sheet, amount, when

ODDS = {  # what an answer protects -> what its factor bounds: another value is leaving and coming back
    "presence": "It moved anybody's odds that you are in it by at most the factor under `odds`, and about your values, "
    "for somebody certain that you are in it, by at most that factor twice.",
    "value": "It moved anybody's odds about your values by at most the factor under `odds`.",
}


def receipt_sheets(receipt: Receipt) -> list[Sheet]:
    """What one person was promised, and what was spent on which answers."""
    head = Sheet(
        title="Receipt",
        columns=("register", "allowed", "spent", "left"),
        rows=((receipt.register, *map(amount, (receipt.allowance, receipt.spent, receipt.remaining))),),
        notes=(receipt.summary,),
        numbers=frozenset({"allowed", "spent", "left"}),
    )
    chosen = Sheet(
        title="What you chose",
        columns=("when", "chosen", "counts as", "by"),
        rows=tuple(
            (when(one.time), "" if one.epsilon is None else amount(one.epsilon), amount(one.level), one.by)
            for one in receipt.statements
        ),
    )
    uses = [*receipt.releases, *receipt.individual]
    used = Sheet(
        title="Answers that could have used your data",
        columns=("when", "ε", "odds", "question"),
        rows=tuple((when(use.time), amount(use.epsilon), _factor(use, receipt), use.question) for use in uses),
        notes=tuple(dict.fromkeys(_promise(use, receipt) for use in uses)),
        numbers=frozenset({"ε", "odds"}),
    )
    return [head, chosen, used]


def _factor(use: Use, receipt: Receipt) -> str:
    return f"× {factor(use.epsilon)}" if use in receipt.releases else "no limit"


def _promise(use: Use, receipt: Receipt) -> str:
    """What is promised in words that stand for all answers of its kind; caveats belong to one answer."""
    if use.delta or use.arithmetic == "float" or use not in receipt.releases:
        return f"{when(use.time)}: {use.promise}"
    return f"{use.table}: The answer protects {SECRETS[use.protects]}. {ODDS[use.protects]}"


def change_sheets(entry: str, receipt: Receipt) -> list[Sheet]:
    """What somebody who chose anew is told."""
    allowed, spent, left = map(amount, (receipt.allowance, receipt.spent, receipt.remaining))
    return [Sheet(title=f"Entry {entry}: from now on ε = {allowed} at most; {spent} is spent, {left} is left.")]
