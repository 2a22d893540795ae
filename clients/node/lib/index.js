// SPDX-License-Identifier: MIT
"use strict";
const { connect } = require("./connect");
const { errorText, ...errors } = require("./errors");
const { File } = require("./file");
const { Queue, SyncQueue } = require("./queue");
const { Worker } = require("./worker");
const { sentinelPrimary } = require("./sentinel");
const { Values } = require("./words");

module.exports = { connect, Queue, SyncQueue, File, Values, Worker, ...errors, sentinelPrimary };
