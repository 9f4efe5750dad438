"""What programs of macOS and FreeBSD print, and stand-ins that print it.

The forms are those that people show in public (issues and test data of projects that parse them,
and the manual pages of powermetrics and iostat); the figures are made up.
"""

from pathlib import Path

#: Of `sysctl` on an M2 Pro with macOS 14, and on an Intel iMac with macOS 13.
APPLE_SYSCTL = """hw.memsize: 17179869184
hw.physmem: 2147483647
hw.pagesize: 16384
hw.model: Mac14,9
hw.perflevel0.physicalcpu: 6
hw.optional.arm.FEAT_BF16: 1
machdep.cpu.brand_string: Apple M2 Pro
kern.osproductversion: 14.5
kern.bootsessionuuid: 0A1B2C3D-1111-2222-3333-444455556666
"""
INTEL_SYSCTL = """hw.memsize: 34359738368
hw.pagesize: 4096
hw.model: iMac19,1
machdep.cpu.brand_string: Intel(R) Core(TM) i5-9600K CPU @ 3.70GHz
kern.osproductversion: 13.6.7
kern.bootsessionuuid: 9F8E7D6C-1111-2222-3333-444455556666
"""
FREEBSD_SYSCTL = """hw.physmem: 8520495104
hw.pagesize: 4096
hw.model: AMD EPYC 7402P 24-Core Processor
vm.stats.vm.v_free_count: 1000000
vm.stats.vm.v_inactive_count: 500000
"""
SWAP = "vm.swapusage: total = 2048.00M  used = 1063.75M  free = 984.25M  (encrypted)\n"
VM_STAT = """Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               10000.
Pages active:                            450000.
Pages inactive:                          420000.
Pages speculative:                         5000.
Pages throttled:                              0.
Pages wired down:                        120000.
Pages purgeable:                          11000.
"Translation faults":                1935466161.
Pages copy-on-write:                   84466299.
File-backed pages:                       398262.
Pages occupied by compressor:             30000.
Swapouts:                                     0.
"""
MAC_IOSTAT = """      cpu    load average
 us sy id   1m   5m   15m
  9  4 87  2.61 2.60 2.84
 35 10 55  2.61 2.60 2.84
100  0  0  2.70 2.60 2.84
"""
FREEBSD_IOSTAT = """       tty             cpu
 tin  tout us ni sy in id
   0    36  1  0  0  0 99
   0   108 20  0  5  0 75
"""
IFCONFIG = """lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
\toptions=1203<RXCSUM,TXCSUM,TXSTATUS,SW_TIMESTAMP>
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 ::1 prefixlen 128
\tinet6 fe80::1%lo0 prefixlen 64 scopeid 0x1
\tnd6 options=201<PERFORMNUD,DAD>
gif0: flags=8010<POINTOPOINT,MULTICAST> mtu 1280
en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\toptions=6460<TSO4,TSO6,CHANNEL_IO,PARTIAL_CSUM,ZEROINVERT_CSUM>
\tether 02:00:00:00:00:01
\tinet6 fe80::451:fde8:31fc:cb02%en0 prefixlen 64 secured scopeid 0x6
\tinet6 2001:db8::f86a:2677:f8bd:58a2 prefixlen 64 autoconf temporary
\tinet6 2001:db8::14c8:a203:4bc2:9d99 prefixlen 64 autoconf secured
\tinet6 2001:db8::5 prefixlen 64 tentative
\tinet 192.0.2.56 netmask 0xffffff00 broadcast 192.0.2.255
\tmedia: autoselect (1000baseT <full-duplex>)
\tstatus: active
bridge0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tConfiguration:
\t\tid 0:0:0:0:0:0 priority 0 hellotime 0 fwddelay 0
\tmember: en1 flags=3<LEARNING,DISCOVER>
utun3: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> mtu 1380
\tinet 198.51.100.2 --> 198.51.100.2 netmask 0xffffffff
"""
#: Of powermetrics on an M2 with macOS 14, on an M1 with macOS 11, and on an Intel Mac.
APPLE_POWER = """Machine model: Mac14,9
OS version: 23F79
Boot arguments:

*** Sampled system activity (Fri May 24 13:41:46 2024 +0200) (1002.90ms elapsed) ***

**** Processor usage ****

E-Cluster HW active frequency: 1248 MHz
E-Cluster HW active residency:  77.43% (600 MHz:   0% 912 MHz:  54% 2424 MHz: 8.7%)
CPU 0 frequency: 1359 MHz

CPU Power: 823 mW
GPU Power: 26 mW
ANE Power: 323 mW
Combined Power (CPU + GPU + ANE): 1172 mW
"""
BIG_SUR_POWER = "ANE Power: 0 mW\nDRAM Power: 11 mW\nCPU Power: 19 mW\nGPU Power: 3 mW\nPackage Power: 33 mW\n"
INTEL_POWER = """**** Processor usage ****

Intel energy model derived package power (CPUs+GT+SA): 2.48W

LLC flushed residency: 51.7%
"""


def plant(folder: Path, sysctl: str = APPLE_SYSCTL, **programs: str) -> Path:
    """Write programs of a Mac, to be the first of PATH; ``programs``: their scripts."""
    scripts = {
        "sysctl": prints(sysctl + SWAP),
        "vm_stat": prints(VM_STAT),
        "iostat": prints(MAC_IOSTAT) + "exec sleep 60\n",
        "ifconfig": prints(IFCONFIG),
        "caffeinate": 'echo "$@" >"$0.told"\nexec sleep 60\n',
        "powermetrics": prints(APPLE_POWER) + "exec sleep 60\n",
        "sudo": 'test "$1" = -n && shift && BY_SUDO=1 exec "$@"\n',
        **programs,
    }
    folder.mkdir(exist_ok=True)
    for name, script in scripts.items():
        (folder / name).write_text("#!/bin/sh\n" + script)
        (folder / name).chmod(0o755)
    return folder


def prints(text: str) -> str:
    """A script that prints a text."""
    return f"cat <<'END'\n{text}END\n"


def needs_root() -> str:
    """The first line of a script that only ``sudo`` may start."""
    return 'test -n "$BY_SUDO" || exit 1\n'
