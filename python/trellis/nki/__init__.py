"""NKI kernels without hardware: computed with numpy, and traced to records that are timed."""
