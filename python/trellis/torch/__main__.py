"""`python -m trellis.torch` compiles the process group ahead of a job where none came along, and says where it is."""

from trellis.torch.compiling import prepare

print(prepare())
