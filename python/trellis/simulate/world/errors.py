"""What stops a recording: said with the module, the line, and what to do."""

from trellis.simulate.record import Place

__all__ = ["CannotRecord", "NotUnderstood"]


class CannotRecord(RuntimeError):
    def __init__(self, place: Place, fault: str, remedy: str) -> None:
        super().__init__(f"{place}: {fault}; {remedy}")


class NotUnderstood(ValueError):
    """The job's command does not say which script a rank runs."""
