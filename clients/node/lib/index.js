// SPDX-License-Identifier: MIT
"use strict";
const { connect } = require("./connect");
const { Retry, Back, Dead, NotYours, ReplyLost, EffectError, GivenUp, WorkerError, FileError } = require("./errors");
const { File } = require("./file");
const { Queue, SyncQueue } = require("./queue");
const { Worker } = require("./worker");
const { sentinelPrimary } = require("./sentinel");
const { Values } = require("./words");

module.exports = {
    connect, Queue, SyncQueue, File, Values, Worker, Retry, Back, Dead, NotYours, ReplyLost, EffectError, GivenUp,
    WorkerError, FileError, sentinelPrimary,
};
