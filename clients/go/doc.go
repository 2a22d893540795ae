// SPDX-License-Identifier: MIT

// Package tickwheel puts tasks into the queues of the Redis module tickwheel, and works on them. It stands
// on redigo (github.com/gomodule/redigo/redis), whose pools it takes connections from.
//
// A Queue files, moves, cancels and describes the tasks of one key. A Worker takes tasks that are ready,
// each for a limited time, its lease, and calls a handler for each:
//
//	pool, err := tickwheel.NewPool("redis://127.0.0.1:7379")
//	mails := tickwheel.NewQueue(pool, "mails")
//	id, err := mails.Put(ctx, "mail:7", "remind ann", tickwheel.In(30*time.Minute))
//
//	worker := &tickwheel.Worker{Pool: pool, Jobs: 8}
//	worker.Handle("mails", func(ctx context.Context, job *tickwheel.Job) error {
//		return send(ctx, job.Text())
//	})
//	err = worker.Run(ctx)
//
// Times have the resolution of the server, a millisecond. A part of a millisecond counts as a whole one, so
// that no task is due too early.
//
// The context of a method limits the time in which it gets a connection. Its deadline, if it has one, limits
// the wait for the reply too. Without a deadline the connection's own time limit counts
// (redis.DialReadTimeout). To cancel a context does not stop a command that was sent.
//
// All types are safe for several goroutines at a time, except where they say otherwise.
package tickwheel

// Version is the version of this package, and of the tree that it comes with.
const Version = "1.0.0"
