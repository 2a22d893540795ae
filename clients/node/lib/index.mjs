// SPDX-License-Identifier: MIT
// The same for `import`: the names are listed, because a tool that reads the source finds them so.
import tickwheel from "./index.js";

export const {
    connect, Queue, SyncQueue, File, Values, Worker, Retry, Back, Dead, NotYours, ReplyLost, EffectError, GivenUp,
    WorkerError, FileError, sentinelPrimary,
} = tickwheel;
export default tickwheel;
