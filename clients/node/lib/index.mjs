// SPDX-License-Identifier: MIT
// The same for `import`: the names are listed, because a tool that reads the source finds them so.
import tickwheel from "./index.js";

export const { Queue, Values, Worker, Retry, Back, Dead, NotYours, ReplyLost, EffectError, GivenUp, WorkerError,
    sentinelPrimary } = tickwheel;
export default tickwheel;
