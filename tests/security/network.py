"""network.py - addresses that are not loopback's, in a network of this process's own.

On the loopback interface of a new network namespace every address of NETWORK is local: a client binds to any of them,
and the daemon sees it come from there.
"""

import ctypes
import fcntl
import os
import socket
import struct

from harness import TIMEOUT_SECONDS, Skip

NETWORK = "10.77."
CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK, IFF_UP = 0x8914, 0x8916, 0x891C, 1


def unshare():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) == 0:
        return True
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    return True


def set_up():
    if not unshare():
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        for request, text in ((SIOCSIFADDR, NETWORK + "0.1"), (SIOCSIFNETMASK, "255.255.0.0")):
            place = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))
            fcntl.ioctl(control, request, struct.pack("16s16s", b"lo:1", place))
    return True


# Once, before a thread is started: a namespace is a thread's.
IS_OWN = set_up()


def need():
    if not IS_OWN:
        raise Skip("a network of its own cannot be had here")


def address(number):
    """The number-th machine."""
    return f"{NETWORK}{1 + number // 250}.{1 + number % 250}"


def connect(to, number=None):
    """From that machine; None: from this one."""
    source = (address(number), 0) if number is not None else None
    return socket.create_connection(to, timeout=TIMEOUT_SECONDS, source_address=source)
