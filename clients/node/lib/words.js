// SPDX-License-Identifier: MIT
// The words of the commands that file and change tasks. Each function checks its arguments before it returns.
"use strict";
const check = require("./check");

const WHEN = ["delay", "at"];
const PUT = [...WHEN, "condition", "keepDue", "every", "times", "missed", "maxLate", "tries", "backoff"];
const SEND = [...PUT, "kind", "maxlen"];
const KINDS = ["stream", "list", "list left"];
const MOST_TRIES = 1000000, MOST_TARGET_TRIES = 15;

/** Returns [IN, ms] or [AT, unix ms]; `[]` if neither is given. */
function when({ delay, at }) {
    if (delay !== undefined && at !== undefined) {
        throw new TypeError("delay and at are both given: expected one of them");
    }
    if (at !== undefined) return ["AT", String(check.time("at", at))];
    return delay === undefined ? [] : ["IN", String(check.ms("delay", delay))];
}

function condition(value, known) {
    return value === undefined ? [] : [check.oneOf("condition", value, known).toUpperCase()];
}

/** Whether an option has a value: null is none, as in the tasks of Queue.get. */
const given = (value) => value !== undefined && value !== null;

function repetition({ every, times }) {
    if (!given(every)) {
        if (given(times)) throw new TypeError(`times is ${check.shown(times)}, and every is missing`);
        return [];
    }
    const words = ["EVERY", String(check.span("every", every, 1))];
    if (!given(times)) return words;
    return [...words, "TIMES", String(check.integer("times", times, 1, Number.MAX_SAFE_INTEGER))];
}

function late({ missed, maxLate }) {
    return [
        ...(missed === undefined ? [] : ["MISSED", check.oneOf("missed", missed, ["burst", "skip", "coalesce"])]),
        ...(given(maxLate) ? ["MAXLATE", String(check.span("maxLate", maxLate, 0))] : []),
    ];
}

function factor(value) {
    const wish = "expected a number from 1 to 100 with at most two decimal places";
    if (typeof value !== "number") throw new TypeError(`backoff.factor is ${check.shown(value)}: ${wish}`);
    if (!(value >= 1 && value <= 100) || !/^\d+(\.\d{1,2})?$/.test(String(value))) {
        throw new RangeError(`backoff.factor is ${value}: ${wish}`);
    }
    return String(value);
}

function backoff(value) {
    if (value === undefined) return [];
    const { first, factor: by, max, jitter } = check.options(value, ["first", "factor", "max", "jitter"]);
    const words = ["BACKOFF", String(check.span("backoff.first", first, 1)), factor(by),
        String(check.span("backoff.max", max, 1))];
    return jitter === undefined ? words
        : [...words, "JITTER", String(check.integer("backoff.jitter", jitter, 0, 100))];
}

/** Several values of one payload. */
class Values {
    constructor(...values) {
        if (values.length === 0) throw new RangeError("there is no value: expected one or more");
        this.values = values;
    }
}

function payloadOf(payload) {
    if (!(payload instanceof Values)) return [check.value("payload", payload)];
    return payload.values.map((value, i) => check.value(`payload[${i}]`, value));
}

/** Returns the id as the server knows it: for '*' it makes one. */
function newId(id) {
    if (id === null || id === undefined) return "*";
    if (String(check.bytes("id", id)) !== "*") return check.bytes("id", id);
    throw new RangeError("id is '*', for which the server makes another one: expected null");
}

/** Returns the words of the conditions of a put. */
function conditions({ condition: word, keepDue = false }) {
    if (!check.yesNo("keepDue", keepDue)) return condition(word, ["nx", "xx", "gt", "lt"]);
    return [...condition(word, ["nx", "xx"]), "KEEPDUE"];
}

/** Returns the time and the options of a put or a send. */
function filing(options, mostTries) {
    const { tries } = options, time = when(options);
    return [...(time.length ? time : ["IN", "0"]), ...conditions(options), ...repetition(options), ...late(options),
        ...(tries === undefined ? [] : ["TRIES", String(check.integer("tries", tries, 1, mostTries))]),
        ...backoff(options.backoff)];
}

function put(key, id, payload, options) {
    check.options(options, PUT);
    return ["TW.PUT", key, newId(id), ...filing(options, MOST_TRIES), "PAYLOAD", ...payloadOf(payload)];
}

/** Returns the words of a target, which has the `kind` of a look. */
function target(kind, maxlen) {
    const words = check.oneOf("kind", kind, KINDS).toUpperCase().split(" ");
    if (maxlen === undefined) return words;
    return [...words, "MAXLEN", String(check.integer("maxlen", maxlen, 1, Number.MAX_SAFE_INTEGER))];
}

/** Returns the payload for a target: fields and values for a Stream, and one value for a List. */
function entry(kind, payload) {
    if (kind !== "stream") return payloadOf(payload);
    const fields = payload instanceof Map ? [...payload] : check.isPlain(payload) ? Object.entries(payload) : [];
    if (fields.length === 0) {
        throw new TypeError(`payload is ${check.shown(payload)}: expected an object of fields and values, or a Map, ` +
            "as a Stream has");
    }
    return fields.flatMap(([field, value]) => [check.bytes("a field", field), check.value("payload", value)]);
}

function send(key, to, id, payload, options) {
    const { kind = "stream", maxlen } = check.options(options, SEND);
    return ["TW.SEND", key, check.bytes("target", to), newId(id), ...filing(options, MOST_TARGET_TRIES),
        ...target(kind, maxlen), "PAYLOAD", ...entry(kind, payload)];
}

function cancel(key, ids) {
    if (ids.length === 0) throw new RangeError("there is no id: expected one or more");
    return ["TW.CANCEL", key, ...ids.map((id) => check.bytes("id", id))];
}

function move(key, id, options) {
    check.options(options, [...WHEN, "condition"]);
    const time = when(options);
    if (!time.length) throw new TypeError("neither delay nor at is given: expected one of them");
    return ["TW.MOVE", key, check.bytes("id", id), ...time, ...condition(options.condition, ["gt", "lt"])];
}

/** One task, or all of them: `id` is null. */
function named(id) {
    return id === null ? ["ALL"] : ["IDS", "1", check.bytes("id", id)];
}

function replay(key, id, options) {
    check.options(options, WHEN);
    return ["TW.REPLAY", key, ...named(id), ...when(options)];
}

function purge(key, id) {
    return ["TW.PURGE", key, ...named(id)];
}

function dead(key, { count, after }) {
    return ["TW.DEAD", key, "COUNT", String(check.integer("count", count, 1, check.MANY)),
        ...(after === undefined ? [] : ["AFTER", check.bytes("after", after)])];
}

function range(key, { first, last, count, after }) {
    const end = (name, time, none) => (time === undefined ? none : String(check.time(name, time)));
    return ["TW.RANGE", key, end("first", first, "-"), end("last", last, "+"),
        ...(after === undefined ? [] : ["AFTER", after]),
        "COUNT", String(check.integer("count", count, 1, check.MANY))];
}

function forecast(key, { step, steps }) {
    return ["TW.FORECAST", key, "STEP", String(check.span("step", step, 1)),
        "STEPS", String(check.integer("steps", steps, 1, check.MANY))];
}

function promote(key, id) {
    return ["TW.PROMOTE", key, ...named(id)];
}

module.exports = { Values, put, send, cancel, move, replay, purge, dead, range, forecast, promote };
