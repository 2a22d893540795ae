// SPDX-License-Identifier: MIT
// A job's own effect together with its acknowledgement: one script of Redis.
"use strict";
const check = require("./check");
const { text } = require("./replies");

// The handler's script stands between these two, with its own KEYS and ARGV, and keeps the numbers of its lines. If
// it does not compile, nothing is acknowledged. TW.ACK comes first: it is refused where nothing may be written,
// and after it the server lets the script write whatever happens.
const HEAD = "local effect = function(KEYS, ARGV) ";
const TAIL = `
end
local keys, args = {}, {}
for i = 2, #KEYS do keys[i - 1] = KEYS[i] end
for i = 3, #ARGV do args[i - 2] = ARGV[i] end
local done = redis.pcall('TW.ACK', KEYS[1], ARGV[1], ARGV[2])
if type(done) == 'table' then return done end
if done ~= 1 then return {0} end
local went, reply = pcall(effect, keys, args)
local failed = type(reply) == 'table' and reply.err
if not went or failed then return {2, failed or tostring(reply)} end
return {1, reply}
`;

/** Returns an array of values, each as `checked` returns it. */
function list(name, values, checked) {
    if (!Array.isArray(values)) throw new TypeError(`${name} is ${check.shown(values)}: expected an array`);
    return values.map((value, i) => checked(`${name}[${i}]`, value));
}

function argument(name, value) {
    return typeof value === "number" ? String(value) : check.bytes(name, value);
}

/** Returns the keys of a handler's script. */
function keysOf(keys) {
    return list("keys", keys, check.bytes);
}

/** Returns the command that acknowledges the job with these names, and runs the script of its handler. */
function words([queue, id, token], script, keys, args) {
    if (typeof script !== "string") {
        throw new TypeError(`the script is ${check.shown(script)}: expected a string`);
    }
    if (script.startsWith("#!")) {
        const [line] = script.split("\n", 1);
        throw new RangeError(`the script begins with ${check.shown(line)}: expected Lua without such a line`);
    }
    return ["EVAL", HEAD + script + TAIL, String(1 + keys.length), queue, ...keys, id, token,
        ...list("args", args, argument)];
}

/** Returns a reply of a script as the worker's payloads are: bytes become strings, unless `buffers`. */
function plain(reply, buffers) {
    if (Array.isArray(reply)) return reply.map((one) => plain(one, buffers));
    return Buffer.isBuffer(reply) && !buffers ? text(reply) : reply;
}

module.exports = { keysOf, words, plain };
