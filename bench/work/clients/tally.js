// SPDX-License-Identifier: MIT
// The arguments of the client programs in Node, and the lines by which they tell of their jobs; see tally.py.
// A connection that is open keeps the program, until SIGTERM.
const fs = require('fs');

const IN_FLIGHT = 100;
const QUEUE = 'tasks';

const [, mode, ...numbers] = process.argv.slice(2);
const [port, server, jobs, bytes] = numbers.map(Number);
const asked = { mode, port, jobs, payload: 'p'.repeat(bytes) };

// The processor times so far. All work of the server is done by its first thread.
function spent() {
    const { user, system } = process.cpuUsage();
    const ns = Number(fs.readFileSync(`/proc/${server}/schedstat`, 'ascii').split(' ')[0]);
    return `${user + system} ${Math.round(ns / 1000)}`;
}

function tell(word) {
    console.log(`${word} ${process.hrtime.bigint()} ${spent()}`);
}

let calls = 0;

function called() {
    calls++;
    if (calls === 1)
        tell('first');
    if (calls === jobs)
        tell('last');
}

module.exports = { IN_FLIGHT, QUEUE, asked, tell, called };
