"""What stops a recording: said with the module, the line, and what to do."""

from trellis.simulate.record import Place

__all__ = ["CannotRecord", "Recorded"]


class CannotRecord(RuntimeError):
    def __init__(self, place: Place, fault: str, remedy: str) -> None:
        super().__init__(f"{place}: {fault}; {remedy}")


class Recorded(BaseException):
    """The step is recorded; the job need not go on."""
