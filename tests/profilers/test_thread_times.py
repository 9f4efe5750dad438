"""Threads tell what processor time they have used."""

import threading

from profilers import thread_times


def test_what_other_threads_have_used_is_told_while_they_live():
    before, go_on, busy = thread_times.thread_ids(), threading.Event(), threading.Event()

    def work():
        used_s = thread_times.thread_cpu_s()
        while thread_times.thread_cpu_s() - used_s < 0.02:
            pass
        busy.set()
        go_on.wait()

    thread = threading.Thread(target=work)
    thread.start()
    busy.wait()
    new = thread_times.thread_ids() - before
    assert max(thread_times.cpu_s_by_thread(new).values()) >= 0.02
    go_on.set()
    thread.join()
    assert thread_times.cpu_s_by_thread([2**22 + 1]) == {}  # no thread has such a number
