"""Communicators by the C API, as far as situations.py needs them."""
import ctypes
import os
import pathlib

PROGRAM = os.environ.get("TRELLIS", "build/release/trellis")
F32, I32 = 1, 13
SUM, MAX = 0, 3
LARGE = 1 << 20  # elements: more than lies in the slots between two ranks


class Failed(Exception):
    pass


class Comm:
    library = None

    def __init__(self, handle=None):
        if Comm.library is None:
            Comm.library = ctypes.CDLL(str(pathlib.Path(PROGRAM).resolve().parent / "libtrellis.so"))
            Comm.library.trellis_last_error.restype = ctypes.c_char_p
        self.handle = handle
        if handle is None:
            self.handle = ctypes.c_void_p()
            self.call("comm_create_from_environment", out=True)
        self.memory = ctypes.create_string_buffer(8 * LARGE)

    def call(self, name, *arguments, out=False):
        first = ctypes.byref(self.handle) if out else self.handle
        if getattr(Comm.library, "trellis_" + name)(first, *arguments, *([None] if out else [])) != 0:
            raise Failed(Comm.library.trellis_last_error().decode())

    def all_reduce(self, count=4, dtype=F32, op=SUM):
        self.call("all_reduce", self.memory, self.memory, ctypes.c_size_t(count), dtype, op, None)

    def broadcast(self, root=0):
        self.call("broadcast", self.memory, self.memory, ctypes.c_size_t(4), F32, root, None)

    def send(self, to, count=LARGE):
        self.call("send", self.memory, ctypes.c_size_t(count), F32, to, None)

    def recv(self, source, count=LARGE):
        self.call("recv", ctypes.byref(self.memory, 4 * LARGE), ctypes.c_size_t(count), F32, source, None)

    def barrier(self):
        self.call("barrier", None)

    def operations(self):
        """How many collectives have begun."""
        count = ctypes.c_uint64()
        self.call("comm_operations", ctypes.byref(count))
        return count.value

    def abort(self):
        self.call("comm_abort")

    def destroy(self):
        self.call("comm_destroy")

    def split(self, color, key=0):
        child = ctypes.c_void_p()
        self.call("comm_split", color, key, None, ctypes.byref(child))
        return Comm(child)

    def shrink(self, excluded):
        child = ctypes.c_void_p()
        ranks = (ctypes.c_int * len(excluded))(*excluded)
        self.call("comm_shrink", ranks, len(excluded), None, ctypes.byref(child))
        return Comm(child)


class Group:
    def __enter__(self):
        Comm.library.trellis_group_start()

    def __exit__(self, kind, value, trace):
        if Comm.library.trellis_group_end() != 0 and kind is None:
            raise Failed(Comm.library.trellis_last_error().decode())
