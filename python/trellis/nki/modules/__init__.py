"""The modules that kernels import, of each dialect, as objects."""
