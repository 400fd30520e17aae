"""Public NKI kernels, by the checkout that has them: how each is called, and what it should give."""
