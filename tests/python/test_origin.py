"""Files that the package writes say what made them."""

import datetime
import json
import os
import re
import subprocess
import sys

import pytest

from trellis import __version__, origin, sim
from trellis._where import PROGRAM


def test_a_machine_is_told_as_the_program_tells_it():
    machine = sim.Machine("torus:2x2").what_if("slow:0-1:0.5")
    told = origin.facts(machine)
    assert told["program"] == f"trellis {__version__}"
    words = ["sim", "all_reduce", "-m", "torus:2x2", "-b", "1KiB", "--what-if", "slow:0-1:0.5", "--json"]
    ran = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    made_by = json.loads(ran.stdout)["made_by"]
    assert (made_by["machine"], made_by["figures"]) == (told["machine"], told["figures"])
    other = origin.facts(sim.Machine("torus:2x2").with_figure("torus.latency", "3 us"))
    assert other["figures"] != told["figures"] and other["machine"] == "torus:2x2, figure torus.latency=3 us"


def test_host_and_date_unless_bytes_must_be_the_same(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    told = origin.facts()
    assert told["host"] == os.uname().nodename
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(told["date"])
    assert abs(age.total_seconds()) < 3600
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    told = origin.facts(chip="trn2")
    assert "host" not in told and told["date"] == "1970-01-02T00:00:00Z" and told["chip"] == "trn2"


@pytest.mark.parametrize("date", ["abc", "-5", "1.5", "253402300800"])
def test_a_date_that_is_none_is_refused(monkeypatch, date):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", date)
    with pytest.raises(ValueError, match=f"SOURCE_DATE_EPOCH={date}: expected seconds since 1970"):
        origin.facts()


def test_a_command_that_a_shell_takes():
    code = "from trellis import origin; print(origin.facts()['command'])"
    ran = subprocess.run([sys.executable, "-c", code, "a b"], capture_output=True, text=True, env=os.environ)
    assert re.fullmatch(r"python[\d.]* -c 'from .*' 'a b'\n", ran.stdout), ran.stdout + ran.stderr


def test_comments_and_pages():
    told = {"program": "trellis", "command": "a <b>\nc"}
    assert origin.comment(told) == "# program: trellis\n# command: a <b> c\n"
    assert "<td>a &lt;b&gt;" in origin.section(told)
