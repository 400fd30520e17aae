"""Jobs that go wrong, each for one reason, and what trellis doctor must say first of it.

    situations.py run NAME               one of them, and what doctor says
    situations.py record FOLDER [NAME]   all of them as data for tests/ccl/diagnosis.cpp: a file each

TRELLIS is the program, and libtrellis.so lies beside it."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

from comm import F32, I32, LARGE, MAX, PROGRAM, SUM, Comm, Failed, Group
from moments import FAR, come_last, compute, in_the_third, sleep, state_of, tell_the_third, wait_until, within

TIMEOUT = 6  # seconds: no rank that is well stands still for a third of it, however busy the machine

SITUATIONS = {}
OPERATION_3 = "operation 3, all_reduce of 4 f32, sum"
OWN = "it was in code of its own after operation 2"


def situation(cause, **how):
    """The job's ranks have made a communicator and done two all_reduces. `cause` is a regular expression."""
    def add(function):
        SITUATIONS[function.__name__] = {"cause": cause, "function": function, "ranks": 4, "nodes": 1, "timeout": TIMEOUT,
                                         "begins": True, "told": None, **how}
        return function
    return add


def only(culprit, does):
    """One rank does something of its own; all go on with an all_reduce."""
    def run(rank, comm):
        if rank == culprit:
            does(comm)
        comm.all_reduce()
    return run


@situation(f"rank 2 never came to {OPERATION_3}: {OWN}")
def late_asleep(rank, comm):
    only(2, lambda c: sleep())(rank, comm)


@situation(f"rank 2 never came to {OPERATION_3}: {OWN}")
def late_computing(rank, comm):
    only(2, lambda c: compute())(rank, comm)


@situation(f"ranks 1, 2 never came to {OPERATION_3}: they were in code of their own after operation 2")
def two_late(rank, comm):
    if rank in (1, 2):
        sleep()
    comm.all_reduce()


@situation(f"rank 2 never came to {OPERATION_3}: {OWN}", timeout=30, told=signal.SIGTERM)
def hung_job_is_told_to_end(rank, comm):
    if rank != 2:
        tell_the_third(rank, comm)
    only(2, lambda c: sleep())(rank, comm)


@situation(f"rank 2's process ended after operation 2 and never came to {OPERATION_3}: "
           r"it was killed by signal 9 \(SIGKILL\)")
def dead_between_operations(rank, comm):
    only(2, lambda c: os.kill(os.getpid(), signal.SIGKILL))(rank, comm)


# Of a small operation the others may have all that they need of rank 2, and end well.
@situation(rf"rank 2's process ended in operation 3, all_reduce of {LARGE} f32, sum: it was killed by signal 9 \(SIGKILL\)",
           timeout=10)
def dead_within_an_operation(rank, comm):
    if rank == 2:
        within(comm, lambda: os.kill(os.getpid(), signal.SIGKILL))
    if rank == 3:
        wait_until(lambda: state_of(2) in ("", "Z"))
    comm.all_reduce(LARGE)


@situation(f"rank 2 stands still after operation 2 and never came to {OPERATION_3}: it is stopped by a signal")
def stopped_between_operations(rank, comm):
    only(2, lambda c: os.kill(os.getpid(), signal.SIGSTOP))(rank, comm)


@situation(f"rank 2 stands still in operation 3, all_reduce of {LARGE} f32, sum: it is stopped by a signal")
def stopped_within_an_operation(rank, comm):
    if rank == 2:
        within(comm, lambda: os.kill(os.getpid(), signal.SIGSTOP))
    if rank == 3:
        wait_until(lambda: state_of(2) == "T")
    comm.all_reduce(LARGE)


@situation("rank 1 called all_reduce of 8 f32, sum as operation 3, where ranks 0, 2, 3 called all_reduce of 4 f32, sum")
def other_count(rank, comm):
    come_last(rank, comm, 1)
    comm.all_reduce(8 if rank == 1 else 4)


@situation("rank 1 called all_reduce of 4 i32, sum as operation 3, where ranks 0, 2, 3 called all_reduce of 4 f32, sum")
def other_type(rank, comm):
    come_last(rank, comm, 1)
    comm.all_reduce(dtype=I32 if rank == 1 else F32)


@situation("rank 1 called all_reduce of 4 f32, max as operation 3, where ranks 0, 2, 3 called all_reduce of 4 f32, sum")
def other_operator(rank, comm):
    come_last(rank, comm, 1)
    comm.all_reduce(op=MAX if rank == 1 else SUM)


@situation("rank 1 called broadcast of 4 f32, root 1 as operation 3, where ranks 0, 2, 3 called broadcast of 4 f32, root 0")
def other_root(rank, comm):
    come_last(rank, comm, 1)
    comm.broadcast(root=1 if rank == 1 else 0)
    comm.all_reduce()
    comm.barrier()


@situation("rank 1 called broadcast of 4 f32, root 0 as operation 3, where ranks 0, 2, 3 called all_reduce of 4 f32, sum")
def other_order(rank, comm):
    come_last(rank, comm, 1)
    for what in (comm.broadcast, comm.all_reduce) if rank == 1 else (comm.all_reduce, comm.broadcast):
        what()


@situation("rank 0 sends to rank 1, which does not receive: it is in operation 3, barrier")
def nested_group_without_a_receive(rank, comm):
    with Group():
        comm.send((rank + 1) % 4)
        with Group():
            if rank != 1:
                comm.recv((rank + 3) % 4)
    comm.barrier()


@situation(f"rank 1 never received what rank 0 sends to it: {OWN}")
def send_without_receive(rank, comm):
    if rank == 0:
        comm.send(1)
    else:
        sleep()


@situation("rank 0 waits to receive from rank 1, which does not send: it is in operation 3, barrier")
def receive_without_send(rank, comm):
    if rank == 0:
        comm.recv(1)
    comm.barrier()


@situation("ranks 0, 1, 2 wait for each other in a circle, each in 1 sends and receives after operation 2", ranks=3)
def circle_of_sends(rank, comm):
    comm.send((rank + 1) % 3)
    comm.recv((rank + 2) % 3)


STOPPED = (rf"rank 2 stands still (after operation \d and never came to operation \d, all_reduce of 4 f32, sum|"
           rf"before any operation and never came to operation 1, all_reduce of 4 f32, sum) "
           r"of communicator \w+ of \d ranks: it is stopped by a signal")


def stop_where_a_child_waits(rank, comm, waiting=3):
    """Rank 2 is stopped; one waits for it in a child, the others wait in the parent, for that one as well."""
    child = comm.split(1 if rank in (2, waiting) else 0, rank)
    if rank == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    if rank == waiting:
        child.all_reduce()
    comm.all_reduce()


@situation(STOPPED)
def stopped_where_a_child_waits(rank, comm):
    stop_where_a_child_waits(rank, comm)


# Other hosts learn late what a rank does.
@situation(rf"{STOPPED}|rank 2 stands still in a split after operation 2 of communicator \w+ of 4 ranks: "
           "it is stopped by a signal", nodes=2)
def stopped_where_a_child_waits_on_another_node(rank, comm):
    stop_where_a_child_waits(rank, comm, waiting=1)


@situation(STOPPED)
def stopped_where_a_child_waits_under_load(rank, comm):
    if rank == 0:
        for _ in range(4):
            threading.Thread(target=compute, daemon=True).start()
    stop_where_a_child_waits(rank, comm)


@situation(f"rank 2 never came to a split after operation 2: {OWN}")
def split_without_a_rank(rank, comm):
    if rank == 2:
        sleep()
    comm.split(0, rank)


@situation(f"rank 2 is in {OPERATION_3}, where ranks 0, 1, 3 are in a split after operation 2, "
           "so that they wait for each other")
def split_against_an_operation(rank, comm):
    if rank == 2:
        comm.all_reduce()
    comm.split(0, rank)


@situation(f"rank 2 never came to a shrink after operation 2: {OWN}")
def shrink_without_a_rank(rank, comm):
    if rank >= 2:
        sleep()
    comm.shrink([3])


@situation(f"rank 3's process ended after operation 2 and never came to {OPERATION_3}: it exited with status 0")
def shrink_after_a_death(rank, comm):
    if rank == 3:
        os._exit(0)
    try:
        comm.all_reduce()
    except Failed:
        pass
    if rank == 2:
        sleep()
    comm.shrink([3])


@situation("rank 1 aborted the communicator after operation 2")
def someone_aborts(rank, comm):
    if rank == 1:
        comm.abort()
        sleep()
    comm.all_reduce()


@situation(f"rank 0 aborted the communicator in {OPERATION_3}, where it waited for rank 2", timeout=10)
def a_watchdog_aborts(rank, comm):
    if rank == 0:
        within(comm, comm.abort)
    only(2, lambda c: sleep())(rank, comm)


@situation(r"rank 1 is in operation 1, all_reduce of 4 f32, sum of communicator \w+ of 2 ranks, where ranks 0, 2, 3 are "
           rf"in {OPERATION_3} of communicator \w+ of 4 ranks, so that they wait for each other")
def wrong_communicator(rank, comm):
    child = comm.split(rank // 2, rank)
    (child if rank == 1 else comm).all_reduce()
    (comm if rank == 1 else child).all_reduce()


@situation(r"rank 1 is in operation 1, all_reduce of 4 f32, sum of communicator \w+ of 4 ranks, where ranks 0, 2, 3 are "
           rf"in {OPERATION_3} of communicator \w+ of 4 ranks, so that they wait for each other")
def two_communicators_in_other_order(rank, comm):
    second = comm.split(0, rank)
    for one in (second, comm) if rank == 1 else (comm, second):
        one.all_reduce()


@situation(r"rank 2 never came to operation \d, all_reduce of 4 f32, sum of communicator \w+ of 4 ranks: "
           r"it was in code of its own after operation \d|"
           r"rank 2 never came to operation 1, all_reduce of 4 f32, sum of communicator \w+ of 4 ranks: "
           r"it was in code of its own before any operation")
def late_for_a_group_of_two_communicators(rank, comm):
    second = comm.split(0, 3 - rank)
    if rank == 2:
        sleep()
    with Group():
        comm.all_reduce()
        second.all_reduce()


@situation(rf"rank 3's process ended (after operation \d|before any operation) and never came to {OPERATION_3}: "
           "it exited with status 3", nodes=2, timeout=30)
def fails_on_another_node(rank, comm):
    only(3, lambda c: os._exit(3))(rank, comm)


@situation(f"rank 1 closed the communicator after operation 2 and never came to {OPERATION_3}(: it exited with status 0)?")
def closes_early(rank, comm):
    if rank == 1:
        comm.destroy()
        return
    comm.all_reduce()


@situation(f"rank 1's process ended after operation 2 and never came to {OPERATION_3}: it exited with status 0")
def exits_early(rank, comm):
    if rank != 1:
        comm.all_reduce()


@situation("rank 2 never came to make a communicator of 4 ranks", begins=False)
def never_makes_a_communicator(rank):
    if rank == 2:
        sleep()
    Comm()


@situation("rank 2's process exited with status 5", begins=False, timeout=30)
def fails_before_it_makes_a_communicator(rank):
    if rank == 2:
        os._exit(5)
    Comm()


@situation(f"rank 1's process ended after operation 2 and never came to {OPERATION_3}: it exited with status 1", timeout=10)
def out_of_memory(rank, comm):
    only(1, lambda c: bytearray(1 << 60))(rank, comm)


def be_rank(name, meeting):
    """In the job: rank by rank, so that none waits for a machine that is busy."""
    s, rank = SITUATIONS[name], int(os.environ["RANK"])
    os.environ["MEETING"] = meeting
    (pathlib.Path(meeting) / str(rank)).write_text(str(os.getpid()))
    wait_until(lambda: len(os.listdir(meeting)) >= s["ranks"])
    if not s["begins"]:
        return s["function"](rank)
    comm = Comm()
    comm.all_reduce()
    comm.all_reduce()
    s["function"](rank, comm)


def launch(name, dumps, meeting):
    s = SITUATIONS[name]
    each = s["ranks"] // s["nodes"]
    environment = {**os.environ, "TRELLIS": PROGRAM, "TRELLIS_DUMP": str(dumps), "TRELLIS_TIMEOUT": str(s["timeout"]),
                   "TRELLIS_SECRET": "of this situation"}
    # Each node is a host of its own: its ranks share no memory with the others.
    hosts = [{"TRELLIS_HOST": f"node{n}", "TRELLIS_INTERFACE": "lo"} if s["nodes"] > 1 else {}
             for n in range(s["nodes"])]
    program = ["--", sys.executable, "-B", __file__, "rank", name, str(meeting)]
    port = ["--master-addr", "127.0.0.1", "--master-port", str(20000 + os.getpid() % 10000)]
    nodes = [["--nnodes", str(s["nodes"]), "--node-rank", str(n), *port] if s["nodes"] > 1 else []
             for n in range(s["nodes"])]
    launched = [subprocess.Popen([PROGRAM, "launch", "-n", str(each), "--grace", "10", *node, *program], text=True,
                                 env=environment | host, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                for node, host in zip(nodes, hosts)]
    if s["told"]:
        wait_until(lambda: len(in_the_third(meeting)) == s["ranks"] - 1)
        launched[0].send_signal(s["told"])
    return "".join(one.communicate(timeout=3 * FAR)[0] for one in launched)


def doctor(dumps):
    return subprocess.run([PROGRAM, "doctor", str(dumps)], capture_output=True, text=True, timeout=3 * FAR)


def run(name, dumps):
    """What the job's ranks print, and what doctor does."""
    with tempfile.TemporaryDirectory() as meeting:
        said = launch(name, dumps, meeting)
    return said, doctor(dumps)


def is_right(name, diagnosis):
    return re.fullmatch(SITUATIONS[name]["cause"], (diagnosis.stdout.splitlines() or [""])[0]) is not None


def record(folder, names):
    wrong = []
    for name in names or SITUATIONS:
        with tempfile.TemporaryDirectory() as dumps:
            said, diagnosis = run(name, dumps)
            files = [json.loads(file.read_text()) for file in sorted(pathlib.Path(dumps).glob("*.json"))]
        right = is_right(name, diagnosis)
        print(f"{'right' if right else 'WRONG'} {name}\n{diagnosis.stdout}{diagnosis.stderr}", flush=True)
        if not right:
            print(f"expected {SITUATIONS[name]['cause']}\n{said}", flush=True)
            wrong.append(name)
        text = json.dumps({"cause": SITUATIONS[name]["cause"], "files": files}, separators=(",", ":"))
        (pathlib.Path(folder) / f"{name}.json").write_text(text + "\n")
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        be_rank(*sys.argv[2:])
    elif sys.argv[1] == "run":
        with tempfile.TemporaryDirectory() as dumps:
            said, diagnosis = run(sys.argv[2], dumps)
        print(f"{said}\n{diagnosis.stdout}{diagnosis.stderr}{'right' if is_right(sys.argv[2], diagnosis) else 'WRONG'}")
    else:
        sys.exit(1 if record(sys.argv[2], sys.argv[3:]) else 0)
