"""``bitldp explain sum``: what a secure sum keeps and costs, by the number of its clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from bitldp.base.documents import jsonable
from bitldp.cli.catalogue import MOST_FEATURES, bounded, needed, shown
from bitldp.cli.errors import UsageError
from bitldp.cli.screen import print_whole
from bitldp.privacy import number
from bitldp.sums import Count, Histogram, Number, SecureSum, SumKind, Vector

__all__ = ["SUM", "kind_of", "print_sum", "sum_facts"]

SUM = "sum"
"""Word for a secure sum in the place of a mechanism."""

_TAKEN = ("categories", "low", "high", "steps", "clip", "features", "radius", "delta")
_SHARES = (0.3, 0.5, 0.7, 0.9, 1.0)  # of the floor, whose epsilon is shown
_MOST_CATEGORIES = 1 << 20
_POOR = 3.0  # a local epsilon above which it is none worth the name


def sum_facts(
    epsilon: float,
    options: Mapping[str, Any],
    clients: int | None,
    floor: int | None,
    colluding: int | None,
    noise: str | None,
) -> dict[str, Any]:
    """Compute the facts of a secure sum.

    Parameters
    ----------
    epsilon : float
        Central.
    options : mapping of str
        Of the mechanisms' options those that were given.
    clients, floor, colluding, noise
        As of `SecureSum`; None where not given.

    Returns
    -------
    dict
        JSON values.
    """
    for name in options:
        if name not in _TAKEN:
            raise UsageError(f"{shown(name)} does not apply to {SUM}")
    more = {"delta": options.get("delta"), "floor": floor, "colluding": colluding, "noise": noise}
    given: dict[str, Any] = {name: value for name, value in more.items() if value is not None}
    n = needed("--clients", clients)
    try:
        secure = SecureSum(kind_of(options), epsilon=epsilon, clients=n, **given)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{SUM}: {error}") from None
    least = secure.least_survivors
    numbers = sorted({max(secure.colluding + 1, round(part * least)) for part in _SHARES} | {n})
    evidence = secure.evidence
    plain: dict[str, Any] = jsonable(
        {
            "terms": secure.terms(),
            "digest": secure.digest,
            "central": [
                {"survivors": each, "shown": each >= least, **secure.guarantee.central(each)._asdict()}
                for each in numbers
            ],
            "local": secure.guarantee.local._asdict(),
            "noise": {
                "law_of_a_share": secure.law.name,
                "standard_deviation_at_the_floor": secure.stderr(),
                "standard_deviation_if_all_answer": secure.stderr(n),
                "over_central_gaussian_noise": secure.overhead,
            },
            "bits_on_the_wire": secure.bits * secure.kind.coordinates,
            "wrap_bound": secure.wrap_bound,
            "trust": list(secure.trust),
            "evidence": {**evidence._asdict(), "certificate": evidence.certificate._asdict()},
        }
    )
    return plain


def kind_of(options: Mapping[str, Any]) -> SumKind:
    """Return the kind of sum that options are of: a vector, a histogram, a number, else a count."""
    if "radius" in options and "features" not in options:
        raise UsageError("--radius: is the length that vectors are scaled down to; --features is needed")
    numeric = [name for name in ("clip", "high", "low", "steps") if name in options]
    kinds = {
        "--features": "vectors",
        "--categories": "a histogram",
        shown((numeric or ["low"])[0]): "numbers",
    }
    named = [option for option in kinds if option[2:] in options]
    if len(named) > 1:
        first, second = named[:2]
        raise UsageError(f"{first}: is for {kinds[first]}, {second} for {kinds[second]}; give one of them")
    if "features" in options:
        bounded("--features", options["features"], MOST_FEATURES)
        return Vector(options["features"], options.get("radius", 1.0))
    if "categories" in options:
        bounded("--categories", options["categories"], _MOST_CATEGORIES)
        return Histogram(options["categories"])
    if numeric:
        if ("low" in options) != ("high" in options):
            raise UsageError("--low and --high: both ends of the range are needed")
        ends = (options.get("low", 0.0), options.get("high", 1.0))
        return Number(ends, **{name: options[name] for name in ("steps", "clip") if name in options})
    return Count()


def print_sum(facts: Mapping[str, Any], console: Console, *, as_json: bool = False) -> None:
    """Print what `sum_facts` returned."""
    if as_json:
        console.print_json(data=dict(facts))
        return
    terms, noise, local = facts["terms"], facts["noise"], facts["local"]
    table = Table(title=f"Secure sum: {terms['kind']}", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    shares = {"polya": "Pólya", "skellam": "Skellam", "signs": "thinned signs"}
    budget = f"epsilon {terms['epsilon']}, delta {terms['delta']}"
    table.add_row("asked for", f"{budget}, {terms['clients']:,} clients")
    if "features" in terms:
        size = f"{terms['features']:,} features of a length up to {terms['clip']}"
        table.add_row(
            "a vector", f"{size}, in {terms['coordinates']:,} integers, {terms['steps']} steps long"
        )
    table.add_row("neighbouring data sets", "differ in one record, replaced")
    for each in facts["central"]:
        said = "exact" if each["exact"] else "at most"
        refused = "" if each["shown"] else "; refused, below the floor"
        survivors = f"central epsilon of {each['survivors']:,} survivors"
        table.add_row(survivors, f"{_shown(each['epsilon'])} ({said}){refused}")
    poor = local["epsilon"] == "infinity" or local["epsilon"] > _POOR
    worth = ": none worth the name" if poor else ""
    table.add_row("local epsilon of a share alone", f"{_shown(local['epsilon'])}{worth}")
    deviation = noise["standard_deviation_at_the_floor"]
    table.add_row("noise of the sum", f"standard deviation {_shown(deviation)} steps at the floor")
    table.add_row("over central Gaussian noise", _shown(noise["over_central_gaussian_noise"]))
    law = shares[noise["law_of_a_share"]]
    table.add_row("a share", f"{law}, {facts['bits_on_the_wire']:,} bits on the wire")
    table.add_row("chance that the total wraps", f"at most {facts['wrap_bound']:.1e}")
    evidence = facts["evidence"]
    rests = f"{evidence['entries']:,} integers over 2^{evidence['bits']}, SHA-256 {evidence['table'][:16]}"
    table.add_row("table", rests)
    print_whole(console, table)
    console.print("It holds as long as", markup=False)
    for line in facts["trust"]:
        console.print(f"  - {line}", markup=False)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else number(float(value), 6)
