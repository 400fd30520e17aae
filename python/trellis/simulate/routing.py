"""How many tokens go to each expert, where data would say it: `uniform`, or `skew=S`, expert i as often as (i+1)^-S."""

from math import isfinite

__all__ = ["counts", "exponent"]


def exponent(policy: str) -> float:
    """Raises ValueError with what was expected."""
    if policy == "uniform":
        return 0.0
    name, _, value = policy.partition("=")
    try:
        told = float(value) if name == "skew" else -1.0
    except ValueError:
        told = -1.0
    if not isfinite(told) or told < 0:
        raise ValueError(f"--routing {policy}: expected uniform or skew=S with a number of at least 0, as in skew=0.5")
    return told


def counts(tokens: int, experts: int, policy: str) -> list[int]:
    """Their sum is `tokens`; the first experts get most."""
    weights = [(i + 1.0) ** -exponent(policy) for i in range(experts)]
    whole = sum(weights)
    shares = [tokens * w / whole for w in weights]
    told = [int(s) for s in shares]
    rest = sorted(range(experts), key=lambda i: (told[i] - shares[i], i))
    for i in rest[: tokens - sum(told)]:
        told[i] += 1
    return told
