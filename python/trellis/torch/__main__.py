"""`python -m trellis.torch` compiles the process group ahead of time, and says where it is."""

from trellis.torch.compiling import path

print(path())
