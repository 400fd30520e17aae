"""A command whose standard error is a terminal."""
import os
import pty
import subprocess


def run_on_a_terminal(words):
    """Returns the process that ended, and what its terminal was sent."""
    reader, writer = pty.openpty()
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=writer)
    os.close(writer)
    said = b""
    try:
        while piece := os.read(reader, 65536):  # the kernel hands it over piece by piece, and ends with EIO
            said += piece
    except OSError:
        pass
    os.close(reader)
    return ran, said.decode()
