"""Written by the build."""

LIBRARY: str
INCLUDE: str
PROGRAM: str
