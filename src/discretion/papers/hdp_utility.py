"""[AGK16] Theorem 3, Corollary 2 and Lemma 3: how likely a large error is, and how far shrinking moves an answer."""

from collections.abc import Iterator
from math import exp, sqrt

from discretion.papers.figure import Axes, Claim, Effort, Figure, Point, Points, Result
from discretion.social.function import inner_product
from discretion.social.stretching import shrinkage, tail

DISTANCES = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0]  # k, in units of the noise scale
SIZES = [4, 16, 36, 100, 400, 2_500, 10_000]  # n
THEOREM = "Theorem 3, bias 0 and 1"
COROLLARY, MILD = "Corollary 2, k = √n, weights .5", "Corollary 2, k = √n, weights .99"
LEMMA = "Lemma 3, the bias"
BIAS, BOUND, AT_ROOT = "bias, weights .5", "bound of Lemma 3, weights .5", "bias, weights 1/√n"
EXACT, PRINTED, PLAIN = "stretching, exact", "bound as printed", "plain Laplace at ε·v"


def utility(effort: Effort) -> Iterator[list[Point]]:
    """[AGK16] Theorem 3 and Corollary 2 beside the exact probability of an error above k."""
    for bias in (0.0, 1.0):
        for distance in DISTANCES:
            printed = 0.5 * exp(bias - distance)
            exactly = tail(distance, bias=bias, scale=1.0)
            yield [
                Point(curve=f"{EXACT}, bias {bias:g}", x=distance, y=exactly, panel=THEOREM),
                Point(curve=f"{PRINTED}, bias {bias:g}", x=distance, y=printed, panel=THEOREM, by="reference"),
            ]
    for panel, weight in ((COROLLARY, 0.5), (MILD, 0.99)):
        factor = float(shrinkage(inner_product(2), [weight, weight])[0])
        for n in SIZES:
            bias, distance = (1 - factor**2) * n / 2, sqrt(n)  # both profiles hold every item, ε = 1
            plain = tail(distance, bias=0.0, scale=1 / weight)
            printed = 0.5 * exp(-weight * distance)
            yield [
                Point(curve=EXACT, x=n, y=tail(distance, bias=bias, scale=1.0), panel=panel),
                Point(curve=PRINTED, x=n, y=printed, panel=panel, by="reference"),
                Point(curve=PLAIN, x=n, y=plain, panel=panel, by="auto"),
            ]

    for n in SIZES:
        yield [
            Point(curve=BIAS, x=n, y=(1 - 0.5**2) * n / 2, panel=LEMMA),
            Point(curve=BOUND, x=n, y=gradient_bound(0.5, n), panel=LEMMA, by="reference"),
            Point(curve=AT_ROOT, x=n, y=(1 - 1 / n) * n / 2, panel=LEMMA),
        ]


def gradient_bound(weight: float, items: int) -> float:
    """Return [AGK16] Lemma 3 for the inner product of two profiles that hold everything, all weights the same.

    (1 − w)·‖d‖·max over c of ‖∇f(B d)‖, B = c·I + (1 − c)·diag(w): the gradient of the inner product at B d is B d with
    its halves exchanged, which is longest at c = 1. Here d is all ones, so both norms are √n.
    """
    return (1 - weight) * sqrt(items) * max(((c + (1 - c) * weight) * sqrt(items)) for c in (0.0, 0.5, 1.0))


def _theorem(points: Points) -> Result:
    pairs = [
        (points.y(f"{EXACT}, bias {b:g}", k, THEOREM), points.y(f"{PRINTED}, bias {b:g}", k, THEOREM))
        for b in (0.0, 1.0)
        for k in DISTANCES
    ]
    worst = max(exactly / bound for exactly, bound in pairs)
    at_one = points.y(f"{EXACT}, bias 0", 1.0, THEOREM), points.y(f"{PRINTED}, bias 0", 1.0, THEOREM)
    return Result(
        holds=all(exactly <= bound for exactly, bound in pairs),
        number=f"without bias at k = b the probability is {at_one[0]:.4f}, the bound {at_one[1]:.4f}; "
        f"the largest ratio is {worst:.3f}",
    )


def _holds_for_sizes(panel: str, shown: int) -> Claim:
    def check(points: Points) -> Result:
        pairs = {n: (points.y(EXACT, n, panel), points.y(PRINTED, n, panel)) for n in SIZES}
        exactly, bound = pairs[shown]
        return Result(
            holds=all(e <= b for e, b in pairs.values()),
            number=f"n = {shown:,}: probability {exactly:.3f}, bound {bound:.2g}",
        )

    return Claim(
        text=f"{panel}: Pr[|error| > √n] ≤ ½ exp(−ε v √n) for the inner product of binary vectors",
        check=check,
        rule="the exact probability is at most the bound, at every n",
        section="3.2.4",
        quote="for the inner product of binary vectors K = S(f) = 1",
    )


def _lemma(points: Points) -> Result:
    """Lemma 3 holds; its bound is that of `Function.bias_bound`."""
    pairs = {n: (points.y(BIAS, n, LEMMA), points.y(BOUND, n, LEMMA)) for n in SIZES}
    exactly, bound = pairs[100]
    return Result(
        holds=all(e <= b + 1e-9 for e, b in pairs.values()), number=f"n = 100: bias {exactly:.3g}, bound {bound:.3g}"
    )


def _root_weights(points: Points) -> Result:
    pairs = {n: points.y(AT_ROOT, n, LEMMA) / sqrt(n) for n in SIZES}
    return Result(
        holds=max(pairs.values()) <= 1,
        number=f"with every weight 1/√n the bias is {pairs[100]:.3g}·√n at n = 100, {pairs[10_000]:.3g}·√n at 10,000",
    )


FIGURES = (
    Figure(
        id="hdp-utility",
        title="HDP Theorem 3, Corollary 2 and Lemma 3: large errors and bias",
        compute=utility,
        claims=(
            Claim(
                text="Theorem 3: Pr[|error| > k] ≤ ½ exp((|bias| − k)/b)",
                check=_theorem,
                rule="the exact probability is at most the bound, at every k",
                section="3.2.4",
                quote="Theorem 3 bounds the error introduced by the Stretching Mechanism",
            ),
            _holds_for_sizes(COROLLARY, 100),
            _holds_for_sizes(MILD, 10_000),
            Claim(
                text="Lemma 3: the bias is at most (1 − w)·‖d‖·max ‖∇f‖",
                check=_lemma,
                rule="the exact bias is at most the bound, at every n",
                section="3.2.4",
                quote="Bound on the bias for functions whose gradient is defined",
            ),
            Claim(
                text="after Lemma 3: weights of the order 1/√n keep the bias of the order √n",
                check=_root_weights,
                rule="with every weight 1/√n the bias is at most √n, at every n",
                section="3.2.4",
                quote="From this, we can constrain v to guarantee any desired upper bound on the bias",
            ),
        ),
        axes=Axes(
            x="k/b|n|n|n",
            y="Pr(error > k)|Pr(error > √n)|Pr(error > √n)|bias",
            log_y=True,
            log_x=True,
            columns=2,
            better="",
        ),
        data="profiles that hold every item, ε = 1",
        runs=0,
        quick=0,
        steps=2 * len(DISTANCES) + 3 * len(SIZES),
        seconds=0.1,
        note="The proof of Theorem 3 drops a positive term from an upper bound; exp(−k/b) cosh(bias/b) is exact. "
        "Corollary 2 takes the inner product to be 1-Lipschitz; its slope reaches √n. When all weights are equal, "
        "plain Laplace noise at ε·v gives the same guarantee without bias. Lemma 3 holds. What keeps a bias of "
        "(1 − v)·n below √n is 1 − v of the order 1/√n, not v.",
    ),
)
