"""The guardian of an agent is its parent: whatever way the agent ends, no descendant is left.

Those in sessions of their own, and those of an agent that is killed, are no exception. Its source
travels with that of the bootstrap, whose process it is, to any Python.
"""

import contextlib
import os
import select
import signal
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
#: Seconds that the agent has to end once its input is closed, and that killed processes may take.
END_S, GONE_S = 3.0, 2.0


def ask_kernel(option, value):
    # type: (int, int) -> bool
    """Whether the kernel does as it was asked; elsewhere than on Linux it does not."""
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, AttributeError, OSError):
        return False


def adopt():
    # type: () -> bool
    """Become the parent of all descendants whose own has ended; whether the kernel can do so.

    It also continues this process when its parent has ended, should it be stopped.
    """
    ask_kernel(PR_SET_PDEATHSIG, signal.SIGCONT)
    return os.path.exists("/proc/self/stat") and ask_kernel(PR_SET_CHILD_SUBREAPER, 1)  # else none is found


def guard(agent, adopts):
    # type: (int, bool) -> None
    """Wait until the agent has ended, then end what it has left, and this process.

    An agent that is stopped, or hangs, when its input closes is continued first, and then killed.
    adopts: as ``adopt`` returned.
    """
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(agent, signal.SIGKILL))  # then it goes on as below
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):  # they close when the agent ends
        os.dup2(nowhere, descriptor)
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    # Tells that it is closed, a socket also by half; what comes is the agent's to read. A Mac tells
    # what it is asked for alone.
    poll.register(0, getattr(select, "POLLRDHUP", select.POLLHUP))
    end_s = None
    while not reap(agent):
        closed = [found for found, _ in poll.poll(None if end_s is None else 100) if found == 0]
        with contextlib.suppress(OSError):
            os.read(woken, 1 << 10)
        if closed:
            poll.unregister(0)
            end_s = time.monotonic() + END_S
            os.kill(agent, signal.SIGCONT)
        elif end_s is not None and time.monotonic() > end_s:
            os.kill(agent, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if adopts:
        end_children()
    else:
        with contextlib.suppress(OSError):
            os.killpg(agent, signal.SIGKILL)
    os._exit(0)


def reap(awaited):
    # type: (int) -> bool
    """Reap all children that have ended; whether the one that is awaited is among them."""
    ended = []  # type: list[int]
    with contextlib.suppress(ChildProcessError):
        while not ended or ended[-1]:
            ended.append(os.waitpid(-1, os.WNOHANG)[0])
    return awaited in ended


def end_children():
    # type: () -> None
    """Kill all children, whose own then become children, until there are none.

    Nobody else can have the number of a child that was not reaped.
    """
    until_s = time.monotonic() + GONE_S
    left = children()
    while left and time.monotonic() < until_s:
        for child in left:
            with contextlib.suppress(OSError):  # it runs as another user
                os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
        reap(0)
        left = children()


def children():
    # type: () -> list[int]
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/stat" % name, "rb") as stream:
            if int(stream.read().rpartition(b")")[2].split()[1]) == os.getpid():
                found.append(int(name))
    return found
