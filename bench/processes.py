# SPDX-License-Identifier: MIT
"""The processor time and the memory of other processes, from /proc."""
import glob
import os
import time


def fields_of(pid):
    """The fields of stat behind the name of the process, from its state on."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def family(pid):
    """The process and its descendants."""
    children = {}
    for folder in glob.glob("/proc/[0-9]*"):
        one = int(os.path.basename(folder))
        try:
            parent = int(fields_of(one)[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(one)
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def spent_us(pid):
    """The processor time of the process and its children, also of children that have ended."""
    fields = fields_of(pid)
    total = (int(fields[13]) + int(fields[14])) * 1e6 / os.sysconf("SC_CLK_TCK")
    for one in family(pid):
        try:
            total += time.clock_gettime_ns(~one << 3 | 2) / 1000
        except OSError:     # it has just ended, and counts among the ended
            pass
    return total


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024
