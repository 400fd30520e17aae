"""What made a result: version, command line, machine, figures, host, date. Files that this package writes say it, as
those of the program `trellis` do.

>>> facts(machine="trn2.48xlarge")["machine"]
'trn2.48xlarge'
"""

import html
import os
import pathlib
import re
import shlex
import socket
import sys
import time
from typing import TYPE_CHECKING

from trellis import __version__

if TYPE_CHECKING:
    from trellis.machine import Machine

__all__ = ["comment", "facts", "section"]


def facts(machine: "Machine | str | None" = None, **more: str) -> dict[str, str]:
    """In the order in which they are told. With SOURCE_DATE_EPOCH the date is that, and no host is named."""
    words = [pathlib.Path(sys.orig_argv[0]).name, *sys.orig_argv[1:]]
    told = {"program": f"trellis {__version__}", "command": shlex.join(words)}
    if machine is not None:
        from trellis.machine import Machine

        priced = Machine(machine) if isinstance(machine, str) else machine
        told |= {"machine": priced.words, "figures": priced.digest}
    wanted = _wanted_date()
    if wanted is None:
        told["host"] = socket.gethostname()
    seconds = time.time() if wanted is None else wanted
    told["date"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    return told | more


def _wanted_date() -> int | None:
    most = 253_402_300_799  # the last second of the year 9999
    wanted = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not wanted:
        return None
    if not re.fullmatch(r"[0-9]{1,12}", wanted) or int(wanted) > most:
        raise ValueError(f"SOURCE_DATE_EPOCH={wanted}: expected seconds since 1970, from 0 to {most}")
    return int(wanted)


def comment(told: dict[str, str], mark: str = "# ") -> str:
    """A line for each fact."""
    return "".join(f"{mark}{name}: {' '.join(value.split())}\n" for name, value in told.items())


def section(told: dict[str, str]) -> str:
    """The end of a page."""
    rows = "".join(f"<tr><td>{name}</td><td>{html.escape(value)}</td></tr>" for name, value in told.items())
    return f'<section id="made_by"><h2>What made this page</h2><table>{rows}</table></section>'
