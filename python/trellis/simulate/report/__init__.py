"""What a priced job says: as text, JSON, a page, a trace."""

from trellis.simulate.report.text import text as as_text

__all__ = ["as_text"]
