// SPDX-License-Identifier: MIT
// The same for `import`: the names are listed, because a tool that reads the source finds them so.
import tickwheel from "./index.js";

export const {
    connect, Queue, SyncQueue, File, Values, Worker, Retry, Back, Dead, TickwheelError, TaskIsDead,
    WrongArgument, NotAQueue, NoRights, WrongFormat, Unavailable, Full, Elsewhere, NotYours, ReplyLost,
    EffectError, TimeoutError, GivenUp, WorkerError, FileError, sentinelPrimary,
} = tickwheel;
export default tickwheel;
