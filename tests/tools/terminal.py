"""A command whose standard error is a terminal."""
import os
import pty
import subprocess
import threading


def run_on_a_terminal(words):
    """Returns the process that ended, and what its terminal was sent."""
    reader, writer = pty.openpty()
    pieces = []

    def read():  # all the while: a terminal that nobody reads takes little, and then stops the command
        try:
            while piece := os.read(reader, 65536):
                pieces.append(piece)
        except OSError:  # how a terminal ends that nobody writes to any more
            pass

    reading = threading.Thread(target=read)
    reading.start()
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=writer)
    os.close(writer)
    reading.join()
    os.close(reader)
    return ran, b"".join(pieces).decode()
