"""The line between a rank's process and the command: small real data travels on it, and records come back."""

from multiprocessing.connection import Client
from typing import Any

__all__ = ["Line", "NoLine"]


class Line:
    """A rank's end. Only one thread of the rank speaks on it."""

    def __init__(self, address: str, key: bytes, rank: int) -> None:
        self._connection = Client(address, "AF_UNIX", authkey=key)
        self._connection.send(("rank", rank))

    def need(self, rank: int) -> None:
        """The rank takes part in this job's messages, so that it must run, too."""
        self._connection.send(("need", rank))

    def post(self, to: Any, data: bytes) -> None:
        self._connection.send(("post", to, data))

    def fetch(self, key: Any, source: int, where: str) -> bytes:
        """What `source` posts under the key; it is started if it does not run."""
        self._connection.send(("fetch", key, source, where))
        kind, data = self._connection.recv()
        if kind == "failed":
            raise RuntimeError(data)
        return bytes(data)

    def tell(self, what: str, value: Any) -> None:
        self._connection.send((what, value))


class NoLine:
    """Of a rank that runs alone: nobody answers."""

    def need(self, rank: int) -> None:
        pass

    def post(self, to: Any, data: bytes) -> None:
        pass

    def fetch(self, key: Any, source: int, where: str) -> bytes | None:
        return None

    def tell(self, what: str, value: Any) -> None:
        pass
