// SPDX-License-Identifier: MIT
// Which file lies at a path. A look at its inode by stat(2) also asks for its times. Since Linux 6.13 the next
// change would then give the file new times, and each commit would write the journal of the file system. So a Place
// asks the kernel first whether its file has the path still.
"use strict";
const fs = require("fs");

// Linux has the flag with this value on these processors. Such a descriptor does not open the file, so that its
// end leaves SQLite's locks alone.
const O_PATH = 0o10000000;
const HAS_O_PATH = process.platform === "linux" && ["x64", "arm64", "arm", "ia32"].includes(process.arch);
const left = new FinalizationRegistry((descriptor) => fs.closeSync(descriptor));

/** Returns device and inode of a file; null: there is none; undefined: nobody lets us know. */
function identity(path) {
    try {
        const found = fs.statSync(path, { bigint: true, throwIfNoEntry: false });
        return found ? `${found.dev} ${found.ino}` : null;
    } catch (error) {
        if (error.code === "EACCES") return undefined;
        throw error;
    }
}

/** The file that lies at a path now. */
class Place {
    #path;
    #identity;
    #descriptor = null;

    /** Returns the place of a file; null: there is none that may be seen. */
    static of(path) {
        const place = new Place();
        place.#path = path;
        place.#open();
        place.#identity = identity(path);
        return place.#identity ? place : null;
    }

    #open() {
        if (!HAS_O_PATH) return;
        try {
            this.#descriptor = fs.openSync(this.#path, O_PATH);
            left.register(this, this.#descriptor, this);
        } catch (_) { // Then identity() tells.
        }
    }

    /** Returns null if the file still lies there, or cannot be seen; otherwise `replaced` or `removed`. */
    lost() {
        if (this.#isNamed()) return null;
        const found = identity(this.#path);
        if (found === undefined || found === this.#identity) return null;
        return found ? "replaced" : "removed";
    }

    #isNamed() {
        try {
            return this.#descriptor !== null
                && fs.readlinkSync(`/proc/self/fd/${this.#descriptor}`) === this.#path;
        } catch (_) { // There is no /proc.
            return false;
        }
    }

    /** Lets the file go. Its identity stays known. */
    release() {
        if (this.#descriptor === null) return;
        left.unregister(this);
        fs.closeSync(this.#descriptor);
        this.#descriptor = null;
    }
}

module.exports = { Place };
