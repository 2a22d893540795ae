// SPDX-License-Identifier: MIT
"use strict";
const { Retry, Dead, LeaseLost, GivenUp, WorkerError } = require("./errors");
const { Schedule } = require("./schedule");
const { Worker } = require("./worker");
const { sentinelPrimary } = require("./sentinel");

module.exports = { Schedule, Worker, Retry, Dead, LeaseLost, GivenUp, WorkerError, sentinelPrimary };
