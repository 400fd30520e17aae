"""One rank of a job, in a process that believes to be in the whole world."""

import gc
import os
import runpy
import sys
import traceback
from typing import Any

from trellis.simulate.ranks.line import Line, NoLine
from trellis.simulate.record.steps import as_json
from trellis.simulate.world.settings import Settings

__all__ = ["environment", "main", "program"]


def environment(settings: Settings) -> None:
    nodes = settings.world // settings.local_world or 1
    os.environ.update({
        "RANK": str(settings.rank), "WORLD_SIZE": str(settings.world), "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": str(settings.local_world), "GROUP_RANK": str(settings.rank // settings.local_world),
        "GROUP_WORLD_SIZE": str(nodes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": "simulated", "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    })  # fmt: skip


def program(command: list[str]) -> tuple[list[str], bool]:
    """(the script or module and its arguments, whether it is a module) of a command that starts ranks."""
    first, *rest = command
    name = os.path.basename(first)
    if name == "torchrun" or (name.startswith("python") and rest[:2] == ["-m", "torch.distributed.run"]):
        from torch.distributed.run import get_args_parser

        told = get_args_parser().parse_args(rest if name == "torchrun" else rest[2:])
        return [told.training_script, *told.training_script_args], bool(told.module)
    if name.startswith("python"):
        while rest and rest[0] in ("-u", "-B", "-O"):
            rest = rest[1:]
        if rest[:1] == ["-m"]:
            return rest[1:], True
        return rest, False
    if name == "accelerate" and rest[:1] == ["launch"]:
        rest = rest[1:]
        while rest and not rest[0].endswith(".py"):
            rest = rest[1:]
        return rest, False
    return command, False


class _Job:
    def __init__(self, settings: Settings, line: Line | NoLine) -> None:
        from trellis.simulate.world.session import Session

        self._line = line
        self._session = Session(settings, line, ended=self._ended)
        self._session.recorder.failed = self._failed

    def _failed(self, error: BaseException) -> None:
        self._line.tell("failed", _fault(error, self._session.settings))
        sys.stdout.flush()
        os._exit(1)

    def _ended(self) -> None:
        session = self._session
        told: dict[str, Any] = {"record": as_json(session.recorder.record), "torch": session.torch_version,
                                "families": [[f.name, f.groups] for f in session.groups.families()],
                                "partial": list(session.groups.partial.items())}  # fmt: skip
        self._line.tell("record", told)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def run(self, command: list[str]) -> None:
        words, module = program(command)
        if not words:
            raise SystemExit("no script in the command")
        sys.argv = list(words)
        gc.disable = lambda: None  # fake tensors leave cycles: what costs a job time would here cost memory
        with self._session:
            try:
                _run(words, module)
            except SystemExit as error:
                if error.code not in (None, 0):
                    raise
        steps = self._session.steps
        if not steps.finish():
            self._line.tell("short", (self._session.settings.rank, steps.step - 1))
            sys.stdout.flush()
            os._exit(1)


def _run(words: list[str], module: bool) -> None:
    if module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        runpy.run_path(words[0], run_name="__main__")


def _fault(error: BaseException, settings: Settings) -> str:
    from trellis.simulate.world.errors import CannotRecord

    if isinstance(error, CannotRecord):
        return f"rank {settings.rank}: {error}"
    told = traceback.format_exception(error)
    return f"rank {settings.rank} failed:\n{''.join(told[-12:])}"


def main(settings: Settings) -> None:
    """Ends the process."""
    environment(settings)
    line = Line(settings.address, bytes.fromhex(settings.key), settings.rank) if settings.address else NoLine()
    try:
        _Job(settings, line).run(settings.command)
    except SystemExit as error:
        line.tell("failed", f"rank {settings.rank}: the script ended with status {error.code}")
        os._exit(1)
    except BaseException as error:
        line.tell("failed", _fault(error, settings))
        sys.stdout.flush()
        os._exit(1)
