"""One rank of a job, in a process that believes to be in the whole world."""

import contextlib
import gc
import importlib
import os
import re
import runpy
import sys
import traceback
from typing import Any

from trellis.simulate.ranks.line import Line, NoLine
from trellis.simulate.record.steps import as_json
from trellis.simulate.world.errors import CannotRecord, NotUnderstood
from trellis.simulate.world.settings import Settings

__all__ = ["environment", "main", "program"]


def environment(settings: Settings) -> None:
    """As torchrun documents it; each rank has a host's first device."""
    rank, world, hosts = settings.rank, settings.world, -(-settings.world // settings.local_world)
    os.environ.update({
        "RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": str(settings.local_world),
        "GROUP_RANK": str(rank // settings.local_world), "GROUP_WORLD_SIZE": str(hosts), "ROLE_NAME": "default",
        "ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
        "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_RUN_ID": "simulated",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    })  # fmt: skip


_LAUNCHERS = {"torch.distributed.run": "torchrun", "torch.distributed.launch": "torch.distributed.launch",
              "accelerate.commands.launch": "accelerate-launch"}  # fmt: skip


def program(command: list[str]) -> tuple[list[str], bool]:
    """(the script or module and its arguments, whether it is a module) of a command that starts ranks, or of Python."""
    first, *rest = command or [""]
    name = os.path.basename(first)
    if name in ("torchrun", "torch.distributed.launch"):
        return _torchrun(name, rest)
    if name == "accelerate-launch" or (name == "accelerate" and rest[:1] == ["launch"]):
        return _accelerate(rest if name == "accelerate-launch" else rest[1:])
    if re.fullmatch(r"(python|pypy)[\d.]*t?d?(-dbg)?", name):
        words, module = _python(rest)
        if module and words[0] in _LAUNCHERS:
            return program([_LAUNCHERS[words[0]], *words[1:]])
        started = not module and os.path.basename(words[0]) in ("torchrun", "accelerate", "accelerate-launch")
        return program(words) if started else (words, module)
    if not os.path.isfile(first) and not os.path.isfile(os.path.join(first, "__main__.py")):
        raise NotUnderstood(f"'{first}' of the job's command is not known: expected torchrun, python, accelerate "
                            "launch, or a file of Python")  # fmt: skip
    return command, False


def _torchrun(name: str, rest: list[str]) -> tuple[list[str], bool]:
    from torch.distributed import launch, run

    told = run.get_args_parser().parse_args(rest) if name == "torchrun" else launch.parse_args(rest)
    words = [told.training_script, *told.training_script_args]
    if not getattr(told, "use_env", True):
        words.insert(1, "--local-rank=0")
    return program(words) if told.no_python else (words, bool(told.module))


def _accelerate(rest: list[str]) -> tuple[list[str], bool]:
    with contextlib.suppress(ImportError):
        launch = importlib.import_module("accelerate.commands.launch")
        told = launch.launch_command_parser().parse_args(rest)
        words = [told.training_script, *told.training_script_args]
        return program(words) if told.no_python else (words, bool(told.module))
    for at, word in enumerate(rest):
        if word in ("-m", "--module") and rest[at + 1 :]:
            return rest[at + 1 :], True
        if word.endswith(".py"):
            return rest[at:], False
    raise NotUnderstood("no script or module in what accelerate launch is told: expected one that ends with .py, or -m")


def _python(rest: list[str]) -> tuple[list[str], bool]:
    """Python's own options, of which some have a value, in the same word or in the next one."""
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word, *rest = rest
        letters = word[1:] if not word.startswith("--") else ""
        valued = next((at for at, letter in enumerate(letters) if letter in "mcWX"), None)
        if valued is None:
            rest = rest[1:] if word == "--check-hash-based-pycs" else rest
            continue
        value = [letters[valued + 1 :]] if letters[valued + 1 :] else rest[:1]
        rest = rest if letters[valued + 1 :] else rest[1:]
        if letters[valued] == "m" and value:
            return [*value, *rest], True
        if letters[valued] == "c":
            break
    else:
        if rest and rest[0] != "-":
            return rest, False
    raise NotUnderstood("no script or module in what python is told: expected a file, or -m and a module's name")


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
    if isinstance(error, (CannotRecord, NotUnderstood)):
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
