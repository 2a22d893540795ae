// SPDX-License-Identifier: MIT
"use strict";
const { Retry, Back, Dead, NotYours, ReplyLost, EffectError, GivenUp, WorkerError } = require("./errors");
const { Queue } = require("./queue");
const { Worker } = require("./worker");
const { sentinelPrimary } = require("./sentinel");
const { Values } = require("./words");

module.exports = { Queue, Values, Worker, Retry, Back, Dead, NotYours, ReplyLost, EffectError, GivenUp, WorkerError,
    sentinelPrimary };
