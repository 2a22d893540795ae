// SPDX-License-Identifier: MIT
// Checks of arguments. Each error names the argument, its value and the values that are valid. A value of a
// wrong type is a TypeError, a value out of its range a RangeError.
"use strict";
const { inspect } = require("util");

// The latest time, in ms: the end of the year 9999. The longest length of time: 100 years.
const MAX_MS = 253402300799999, CENTURY_MS = 3155760000000;
const MANY = 10000; // The most tasks of one command.

function shown(value) {
    const text = inspect(value, { depth: 0, breakLength: Infinity });
    return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** Returns `value` if it is an integer from `low` to `high`. */
function integer(name, value, low, high) {
    const wish = `expected an integer from ${low} to ${high}`;
    if (typeof value !== "number") throw new TypeError(`${name} is ${shown(value)}: ${wish}`);
    if (!Number.isInteger(value) || value < low || value > high) {
        throw new RangeError(`${name} is ${shown(value)}: ${wish}`);
    }
    return value;
}

/** Returns `value` if it is a delay in ms. */
function ms(name, value) {
    return integer(name, value, 0, MAX_MS);
}

/** Returns `value` if it is a length of time in ms. */
function span(name, value, low) {
    return integer(name, value, low, CENTURY_MS);
}

/** Returns the Unix time in ms of a Date, or of a number that is such a time. */
function time(name, value) {
    if (!(value instanceof Date)) {
        if (typeof value === "number") return ms(name, value);
        throw new TypeError(`${name} is ${shown(value)}: expected a Date, or Unix time in ms`);
    }
    const at = value.getTime();
    if (!(at >= 0 && at <= MAX_MS)) {
        throw new RangeError(`${name} is ${shown(value)}: expected a valid Date from 1970 to 9999`);
    }
    return at;
}

/** Returns `value` if it is text or bytes. A Uint8Array becomes a Buffer: node-redis sends no other bytes. */
function bytes(name, value) {
    if (typeof value === "string" || Buffer.isBuffer(value)) return value;
    if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    throw new TypeError(`${name} is ${shown(value)}: expected a string, a Buffer or another Uint8Array`);
}

/** Whether it is an object of names and values: its prototype is that of Object, or it has none. */
function isPlain(value) {
    if (value === null || typeof value !== "object") return false;
    const kind = Object.getPrototypeOf(value);
    return kind === null || Object.getPrototypeOf(kind) === null;
}

/** Whether JSON has a value for it. JSON.stringify() would make `{}` of a Map. */
function isJson(value) {
    if (value === null || typeof value === "boolean") return true;
    if (typeof value === "number") return Number.isFinite(value);
    if (typeof value !== "object") return false;
    return isPlain(value) || Array.isArray(value) || typeof value.toJSON === "function";
}

/** Returns text and bytes as they are, and any other value as JSON. */
function value(name, given) {
    if (typeof given === "string" || given instanceof Uint8Array) return bytes(name, given);
    const said = `${name} is ${shown(given)}: expected a string, a Buffer, Values, or a value of JSON`;
    if (!isJson(given)) throw new TypeError(said);
    try {
        return JSON.stringify(given);
    } catch (error) {
        throw new TypeError(`${said} (${error.message})`, { cause: error });
    }
}

/** Returns `value` if it is one of `known`. */
function oneOf(name, value, known) {
    if (known.includes(value)) return value;
    throw new RangeError(`${name} is ${shown(value)}: expected ${known.map(shown).join(" or ")}`);
}

function yesNo(name, value) {
    if (typeof value !== "boolean") throw new TypeError(`${name} is ${shown(value)}: expected true or false`);
    return value;
}

/** Returns `options` if it is an object that has no names but `known`. A misspelt option is an error. */
function options(options, known) {
    if (options === null || typeof options !== "object" || Array.isArray(options)) {
        throw new TypeError(`the options are ${shown(options)}: expected an object`);
    }
    for (const name of Object.keys(options)) {
        if (!known.includes(name)) {
            throw new TypeError(`there is no option ${shown(name)}: expected ${known.join(", ") || "none"}`);
        }
    }
    return options;
}

module.exports = { MANY, MAX_MS, shown, integer, ms, span, time, bytes, isPlain, value, oneOf, yesNo, options };
