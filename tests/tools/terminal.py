"""A command whose standard error is a terminal."""
import os
import pty
import re
import signal
import subprocess
import threading


def _rest(reader, pieces):
    """Reads all that comes: a terminal that nobody reads takes little, and then stops the command."""
    try:
        while piece := os.read(reader, 65536):
            pieces.append(piece)
    except OSError:  # how a terminal ends that nobody writes to any more
        pass


def run_on_a_terminal(words):
    """Returns the process that ended, and what its terminal was sent."""
    reader, writer = pty.openpty()
    pieces = []
    reading = threading.Thread(target=_rest, args=(reader, pieces))
    reading.start()
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=writer)
    os.close(writer)
    reading.join()
    os.close(reader)
    return ran, b"".join(pieces).decode()


def interrupted_on_a_terminal(words, seen, by=signal.SIGINT):
    """Sends the command a signal when its terminal has been sent what this pattern finds. Returns its status, its output,
    and all that its terminal was sent."""
    reader, writer = pty.openpty()
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=writer, text=True)
    os.close(writer)
    pieces = []
    try:
        while not re.search(seen, b"".join(pieces).decode(errors="replace")):
            pieces.append(os.read(reader, 65536))
        running.send_signal(by)
    except OSError:  # it has ended before
        pass
    reading = threading.Thread(target=_rest, args=(reader, pieces))
    reading.start()
    out, _ = running.communicate(timeout=300)
    reading.join()
    os.close(reader)
    return running.returncode, out, b"".join(pieces).decode()
