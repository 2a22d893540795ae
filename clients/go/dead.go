// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"
)

// oneCall is the number of tasks that the server takes, lists, replays or purges in one call, at most.
const oneCall = 10000

// page is the number of dead tasks that EachDead asks for at a time.
const page = 1000

// DeadTask is a task whose attempts have all failed, or of which a worker said that it is dead. Get has its payload.
type DeadTask struct {
	ID      string
	Due     time.Time
	Dead    time.Time // When it died.
	Attempt int
	Error   string    // The last error.
	Lapses  int       // How many of the attempts have lapsed.
	Next    time.Time // Zero: a dead task has no next time.
}

// Dead lists up to count dead tasks, 1 to 10,000, the first death first. The count 0 stands for 100. With an id
// as `after` the list continues behind this dead task; if the task is no longer dead, that is an error of the
// server.
func (q *Queue) Dead(ctx context.Context, count int, after string) ([]DeadTask, error) {
	args := redis.Args{q.key}
	if count != 0 {
		args = args.Add("COUNT", count)
	}
	if after != "" {
		args = args.Add("AFTER", after)
	}
	found, err := redis.Values(q.do(ctx, "TW.DEAD", args))
	if err != nil {
		return nil, err
	}
	return parseDead(found)
}

// EachDead calls f for each dead task, the first death first, until f returns an error, which EachDead then
// returns. f may replay, purge or cancel the task. EachDead remembers the ids that it has shown, so each comes
// once.
func (q *Queue) EachDead(ctx context.Context, f func(DeadTask) error) error {
	shown := make(map[string]time.Time)
	after := ""
	for {
		tasks, err := q.Dead(ctx, page, after)
		var refused redis.Error
		if after != "" && errors.As(err, &refused) {
			after = "" // The task is no longer dead. The list begins anew, and the map leaves out its beginning.
			continue
		}
		if err != nil || len(tasks) == 0 {
			return err
		}
		for _, task := range tasks {
			after = task.ID
			if dead, old := shown[task.ID]; old && dead.Equal(task.Dead) {
				continue
			}
			shown[task.ID] = task.Dead
			if err := f(task); err != nil {
				return err
			}
		}
		if len(tasks) < page {
			return nil
		}
	}
}

// Replay lets a dead task wait again, with the due time `when` or, without it, now. Its attempts begin anew.
// Replay returns false if there is no such dead task.
func (q *Queue) Replay(ctx context.Context, id string, when ...When) (bool, error) {
	return redis.Bool(q.do(ctx, "TW.REPLAY", withTime(q.oneTask(id), when)))
}

// ReplayAll lets all dead tasks wait again, in the order of their deaths, and returns their number.
func (q *Queue) ReplayAll(ctx context.Context, when ...When) (int, error) {
	return q.all(ctx, "TW.REPLAY", withTime(redis.Args{q.key, "ALL"}, when))
}

// Purge removes a dead task for good. It returns false if there is no such dead task.
func (q *Queue) Purge(ctx context.Context, id string) (bool, error) {
	return redis.Bool(q.do(ctx, "TW.PURGE", q.oneTask(id)))
}

// PurgeAll removes all dead tasks for good, and returns their number.
func (q *Queue) PurgeAll(ctx context.Context) (int, error) {
	return q.all(ctx, "TW.PURGE", redis.Args{q.key, "ALL"})
}

func (q *Queue) oneTask(id string) redis.Args {
	return redis.Args{q.key, "IDS", 1, id}
}

func withTime(args redis.Args, when []When) redis.Args {
	for _, one := range when {
		args = append(args, one.words()...)
	}
	return args
}

// all calls a command until a call has done less than it may. It does not wait for a reply of 0: tasks that die
// again at once would keep it busy for ever.
func (q *Queue) all(ctx context.Context, command string, args redis.Args) (int, error) {
	sum := 0
	for {
		n, err := redis.Int(q.do(ctx, command, args))
		sum += n
		if err != nil || n < oneCall {
			return sum, err
		}
	}
}
