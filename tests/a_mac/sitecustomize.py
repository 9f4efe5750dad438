"""In a process that has this folder on its path, Python is that of a Mac, as far as agents may ask.

The framework called torch is in numpy.
"""

import os
import platform
import runpy
import select
import socket

platform.system = lambda: "Darwin"
platform.machine = lambda: "arm64"
for module, names in (
    (os, ("sched_getaffinity", "sched_setaffinity", "waitid", "memfd_create")),
    (socket, ("TCP_USER_TIMEOUT", "TCP_INFO", "SO_BINDTODEVICE")),
    (select, ("epoll", "POLLRDHUP")),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
del os.sysconf_names["SC_AVPHYS_PAGES"]
runpy.run_path(os.path.join(os.path.dirname(__file__), "../numpy_framework/sitecustomize.py"))
