"""Functions made from the tables of names: their parameters as documented, their work by our implementations."""

import os
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from trellis.nki.kernels.session import NkiError, where
from trellis.nki.names.constants import environment

__all__ = ["accepting", "entries", "make", "missing", "unsupported", "with_older"]

NEWEST = "0.7"


class Entry(NamedTuple):
    name: str
    since: str  # the first release that has it
    until: str  # the last; "": it still has
    parameters: str


@cache
def entries(table: str) -> dict[str, Entry]:
    found = {}
    with open(os.path.join(os.path.dirname(__file__), f"{table}.txt")) as file:
        lines = file.read().splitlines()
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|", 2)]
        if table.startswith("beta1"):
            name, parameters = cells[0], "|".join(cells[1:])
            found[name] = Entry(name, "", "", parameters)
        else:
            name, releases, parameters = cells
            since, _, until = releases.partition("-")
            found[name] = Entry(name, since, until, parameters)
    return found


def with_older(entry: Entry, table: str) -> Entry:
    """The entry, and the parameters that earlier releases took besides: files of those run too."""
    older = entries(f"older_{table}").get(entry.name) if table == "isa" else None
    return (
        entry
        if older is None
        else Entry(entry.name, entry.since, entry.until, f"{entry.parameters}, {older.parameters}")
    )


def accepting(work: Callable[..., Any], dropped: tuple[str, ...]) -> Callable[..., Any]:
    """The work without arguments that only older releases have, where they say nothing: the destination has the
    type."""

    def call(**given: Any) -> Any:
        for name in dropped:
            if given.pop(name, None) is not None and name == "mask":
                raise NkiError(f"{where()}: mask=; nki has none: expected exact slices (neuronxcc.nki has it)")
        return work(**given)

    call.__doc__ = work.__doc__
    return call


def make(entry: Entry, work: Callable[..., Any], module: str) -> Callable[..., Any]:
    """A function with an entry's parameters that hands them by name to `work`."""
    names, extra = _parameter_names(entry.parameters)
    passed = ", ".join([*(f"{n}={n}" for n in names), *([f"**{extra}"] if extra else [])])
    if any(n.startswith("*") for n in names):
        passed = f"*{names[0][1:]}" + (f", **{extra}" if extra else "")
    given, check = entry.parameters, ""
    if not extra:
        given = f"{given}, **_more" if given else "**_more"
        check = " if _more: _refuse(_more)\n"
    scope = environment() | {"_work": work, "_refuse": lambda more: _refuse_parameters(entry.name, module, more)}
    exec(compile(f"def {entry.name}({given}):\n{check} return _work({passed})", f"<nki {module}>", "exec"), scope)
    made: Callable[..., Any] = scope[entry.name]
    made.__module__, made.__doc__ = module, work.__doc__
    return made


def _parameter_names(parameters: str) -> tuple[list[str], str]:
    import ast

    a = ast.parse(f"def f({parameters}): pass").body[0].args  # type: ignore[attr-defined]
    names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    if a.vararg:
        names.insert(0, f"*{a.vararg.arg}")
    return names, a.kwarg.arg if a.kwarg else ""


MODULES = {"isa": "nki.isa", "language": "nki.language", "collectives": "nki.collectives",
           "beta1_isa": "neuronxcc.nki.isa", "beta1_language": "neuronxcc.nki.language"}  # fmt: skip


# What to write instead of a parameter that was removed.
INSTEAD = {"mask": "nki takes slices that end inside, min(end, size) (nki/migration/index.rst, Deprecation of masking)"}


def _refuse_parameters(name: str, module: str, given: dict[str, Any]) -> None:
    """Says who has the parameters that a function lacks."""
    parameter = next(iter(given))
    have = [label for table, label in MODULES.items()
            if (entry := entries(table).get(name)) is not None and parameter in _parameter_names(entry.parameters)[0]]
    has = f"{' and '.join(have)} has it" if have else f"no release up to {NEWEST} that we know has it"
    instead = f"; {INSTEAD[parameter]}" if parameter in INSTEAD and have else ""
    raise NkiError(f"{where()}: {module}.{name} has no parameter {parameter!r}: {has}{instead}")


def missing(module: str, name: str, tables: tuple[str, ...]) -> AttributeError:
    """The error for a name that a module lacks: who has it."""
    have = []
    for table, label in MODULES.items():
        entry = entries(table).get(name)
        if entry is not None and table not in tables:
            have.append(
                f"{label}" + (f" {entry.since}" + (f" to {entry.until}" if entry.until else "") if entry.since else "")
            )
    has = f"{' and '.join(have)} has it" if have else f"no release up to {NEWEST} that we know has it"
    return AttributeError(f"{where()}: {module}.{name}: {has}")


def unsupported(entry: Entry, module: str) -> Callable[..., Any]:
    """What a documented function does that we lack."""

    def refuse(*_: Any, **__: Any) -> Any:
        since = f" ({module} since {entry.since})" if entry.since else ""
        raise NkiError(f"{where()}: {module}.{entry.name}{since} is known, and not computed here")

    return refuse
