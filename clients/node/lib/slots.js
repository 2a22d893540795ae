// SPDX-License-Identifier: MIT
"use strict";

const SLOTS = 16384;

/** CRC-16 with the polynomial x^16 + x^12 + x^5 + 1, as Redis Cluster has it. */
function crc16(bytes) {
    let sum = 0;
    for (const byte of bytes) {
        sum ^= byte << 8;
        for (let i = 0; i < 8; i++) sum = sum & 0x8000 ? (sum << 1) ^ 0x1021 : sum << 1;
        sum &= 0xffff;
    }
    return sum;
}

/** Returns the hash slot of a key: that of its hash tag, if it has one that is not empty. */
function slotOf(key) {
    const bytes = Buffer.from(key);
    const open = bytes.indexOf("{"), close = open < 0 ? -1 : bytes.indexOf("}", open + 1);
    return crc16(close > open + 1 ? bytes.subarray(open + 1, close) : bytes) % SLOTS;
}

module.exports = { slotOf };
