# SPDX-License-Identifier: MIT
"""A folder for the files of a test, in memory if there is such a disk: syncing it costs nothing."""
import os
import tempfile


def scratch_folder():
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(prefix="tw", dir=memory if os.access(memory, os.W_OK) else None)
