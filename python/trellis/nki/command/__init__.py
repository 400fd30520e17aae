"""What `python -m trellis.nki` does."""
