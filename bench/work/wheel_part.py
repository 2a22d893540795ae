# SPDX-License-Identifier: MIT
"""The share of a process's time that the wheel takes, as perf samples it."""
import os
import subprocess

FREQUENCY = 3989    # a prime, so that it does not march with a loop of the client


def output_of(*words):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout


def functions_of_wheel(module):
    """The names of the wheel's functions: the shared library beside the module has them and no others."""
    library = os.path.join(os.path.dirname(module), "libtickwheel.so")
    listed = output_of("nm", "--defined-only", library)
    names = {line.split()[2] for line in listed.splitlines() if line.split()[1] in "tT"}
    return {name for name in names if not name.startswith(("_", "deregister", "register", "frame_dummy"))}


class Profile:
    """Samples a process for some seconds: `share` of the samples in the wheel's functions, `samples` in all."""

    def __init__(self, pid, module, folder, seconds):
        data, wheel = os.path.join(folder, "perf.data"), functions_of_wheel(module)
        output_of("perf", "record", "-q", "-e", "cpu-clock", "-F", FREQUENCY, "-p", pid, "-o", data,
                  "--", "sleep", seconds)
        script = output_of("perf", "script", "-i", data, "-F", "ip,sym")
        symbols = [line.split()[1].split("+")[0] for line in script.splitlines() if len(line.split()) > 1]
        self.samples = len(symbols)
        self.share = sum(symbol.split(".")[0] in wheel for symbol in symbols) / max(1, self.samples)
        os.remove(data)
