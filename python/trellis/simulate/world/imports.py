"""Changes to modules of a job's libraries, made as soon as they are imported."""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable
from typing import Any

__all__ = ["when_imported"]

_changes: dict[str, Callable[[types.ModuleType], None]] = {}


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _changes:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                execute(module)
                _changes[name](module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def when_imported(name: str, change: Callable[[types.ModuleType], None]) -> None:
    if name in sys.modules:
        change(sys.modules[name])
    if not _changes:
        sys.meta_path.insert(0, _Finder())
    _changes[name] = change
