// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ErrNoTask says that there is no such task in the queue.
var ErrNoTask = errors.New("tickwheel: no such task")

// Queue is one key of the server, which holds tasks. It costs nothing to make one.
type Queue struct {
	pool Pool
	key  string
}

// NewQueue gives the tasks of a key. In a cluster the pool is a *Cluster.
func NewQueue(pool Pool, key string) *Queue { return &Queue{pool, key} }

// Key is the key of the queue.
func (q *Queue) Key() string { return q.key }

// Put files a task for workers, and returns its id. If the queue has a task with this id, the new task
// replaces it. With the id "" the server makes an id. Without In and At the task is due now.
//
// If a Condition kept the queue as it was, Put returns "" and no error.
func (q *Queue) Put(ctx context.Context, id, payload string, options ...Option) (string, error) {
	made, err := redis.String(q.do(ctx, "TW.PUT", q.PutArgs(id, payload, options...)))
	if err == redis.ErrNil {
		return "", nil
	}
	return made, err
}

// PutArgs returns the arguments of TW.PUT, for a transaction or a pipeline of your own:
//
//	conn.Send("TW.PUT", orders.PutArgs("order:42", "cancel", tickwheel.In(30*time.Minute))...)
func (q *Queue) PutArgs(id, payload string, options ...Option) redis.Args {
	var filing filing
	for _, option := range options {
		option.add(&filing)
	}
	if id == "" {
		id = "*"
	}
	args := append(redis.Args{q.key, id}, filing.when.words()...)
	args = append(args, filing.words...)
	return append(args, "PAYLOAD", payload).AddFlat(filing.more)
}

// Cancel removes tasks, in any state, and returns a number for each id: 0 if there was no such task, 1 if it was
// cancelled, 2 if a worker had it. Then it is removed, its work may happen, and the handler that works on it finds
// its context cancelled.
func (q *Queue) Cancel(ctx context.Context, ids ...string) ([]int, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return redis.Ints(q.do(ctx, "TW.CANCEL", q.CancelArgs(ids...)))
}

// CancelArgs returns the arguments of TW.CANCEL, as PutArgs does.
func (q *Queue) CancelArgs(ids ...string) redis.Args { return redis.Args{q.key}.AddFlat(ids) }

// Move gives a task another due time; its attempts begin anew. With GT only a later time, with LT only an
// earlier one. Move returns whether the task was moved. The error is ErrNoTask if there is no such task. A dead
// task is an error: Replay is for dead tasks.
func (q *Queue) Move(ctx context.Context, id string, when When, conditions ...Condition) (bool, error) {
	moved, err := redis.Bool(q.do(ctx, "TW.MOVE", q.MoveArgs(id, when, conditions...)))
	return moved, noTask(err)
}

// MoveArgs returns the arguments of TW.MOVE, as PutArgs does.
func (q *Queue) MoveArgs(id string, when When, conditions ...Condition) redis.Args {
	args := append(redis.Args{q.key, id}, when.words()...)
	for _, condition := range conditions {
		args = append(args, string(condition))
	}
	return args
}

// Get describes a task. The error is ErrNoTask if there is no such task.
func (q *Queue) Get(ctx context.Context, id string) (*Task, error) {
	found, err := redis.Values(q.do(ctx, "TW.GET", redis.Args{q.key, id}))
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("tickwheel: TW.GET of one task replied with %d elements", len(found))
	}
	if found[0] == nil {
		return nil, ErrNoTask
	}
	return parseTask(id, found[0])
}

// Count is the number of tasks: waiting, ready and leased. Dead tasks do not count.
func (q *Queue) Count(ctx context.Context) (int64, error) {
	return redis.Int64(q.do(ctx, "TW.LEN", redis.Args{q.key}))
}

// Next names the waiting task that comes first, with its due time and the time of its next chance to be taken. The
// error is ErrNoTask if no task waits.
func (q *Queue) Next(ctx context.Context) (id string, due, next time.Time, err error) {
	found, err := redis.Values(q.do(ctx, "TW.NEXT", redis.Args{q.key}))
	if err != nil {
		return "", time.Time{}, time.Time{}, noTask(err)
	}
	var read reader
	fields := read.fields(found, nil, 3)
	id, due, next = read.text(fields[0]), read.time(fields[1]), read.time(fields[2])
	return id, due, next, read.err
}

// Promote lets a waiting task be ready now, before its time. It returns false if there is no such waiting task.
func (q *Queue) Promote(ctx context.Context, id string) (bool, error) {
	return redis.Bool(q.do(ctx, "TW.PROMOTE", q.oneTask(id)))
}

// PromoteAll lets waiting tasks be ready now, those with the earliest times first, and returns their number. It
// is one command: at most 10,000 tasks, and about 20 ms; 0 says that no task waits. It does not go on by itself,
// because the next period of a task that repeats may wait by then.
func (q *Queue) PromoteAll(ctx context.Context) (int, error) {
	return redis.Int(q.do(ctx, "TW.PROMOTE", redis.Args{q.key, "ALL"}))
}

// Pause stops the queue: it gives no task to workers until Resume. Pause returns false if it was paused
// already.
func (q *Queue) Pause(ctx context.Context) (bool, error) {
	return redis.Bool(q.do(ctx, "TW.PAUSE", redis.Args{q.key}))
}

// Resume ends the pause. It returns false if the queue was not paused.
func (q *Queue) Resume(ctx context.Context) (bool, error) {
	return redis.Bool(q.do(ctx, "TW.RESUME", redis.Args{q.key}))
}

// do sends one command about the key, whose arguments begin with it.
func (q *Queue) do(ctx context.Context, command string, args redis.Args) (interface{}, error) {
	return call(ctx, q.pool, q.key, command, args)
}

func noTask(err error) error {
	if err == redis.ErrNil {
		return ErrNoTask
	}
	return err
}
