# SPDX-License-Identifier: Apache-2.0
"""The machine beneath the figures, and what else it was doing."""

import mmap
import os
import platform
import subprocess
import time


def describe():
    """CPU model, cores, memory, kernel, system: what a reader needs to place a figure."""
    cpu = _first_value("/proc/cpuinfo", "model name") or platform.machine()
    memory_kib = int((_first_value("/proc/meminfo", "MemTotal") or "0 kB").split()[0])
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gib": round(memory_kib / 2**20, 1),
        "kernel": platform.release(),
        "system": (_first_value("/etc/os-release", "PRETTY_NAME", "=") or "unknown").strip('"'),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def commit(folder):
    """The commit that was measured, marked when files differ from it; empty when there is none."""
    run = subprocess.run(
        ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"],
        check=False,
        capture_output=True,
        text=True,
    )
    return run.stdout.strip()


def warm_memory(mib):
    """Touch and free so much memory, so that the next to allocate finds it backed.

    A virtual machine may hand pages that lie free for two seconds back to its host (free page
    reporting), and who takes them next pays for getting them again: 90 ns of a new key's 300 on the
    machine where this was found. It has nothing to do with the contestants, and hits those most who
    run after a pause.
    """
    if mib == 0:
        return
    with mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        memory[:: mmap.PAGESIZE] = bytes(len(memory) // mmap.PAGESIZE)


class Bystanders:
    """How much of the machine went to others while a contestant had its turn."""

    def __init__(self):
        self._busy, self._all = _cpu_seconds()

    def share(self, own_cpu_s):
        """0 to 1, since this object was made."""
        busy, everything = _cpu_seconds()
        elapsed = everything - self._all
        if elapsed <= 0:
            return 0.0
        return min(max((busy - self._busy - own_cpu_s) / elapsed, 0.0), 1.0)


def _cpu_seconds():
    with open("/proc/stat", encoding="utf-8") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    # user nice system idle iowait irq softirq steal; stolen time is busy, only not ours.
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / 100, sum(fields) / 100


def _first_value(path, name, separator=":"):
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, found, value = line.partition(separator)
            if found and key.strip() == name:
                return value.strip()
    return None
