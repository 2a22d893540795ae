// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	patience  = time.Second     // A handler that was given up may return by itself for so long.
	lastCalls = 2 * time.Second // Calls after running work was given up end after so long.
)

// run is one call of Run. Its three contexts end one after the other: `stopping` when no more tasks are taken,
// `handling` when running handlers are given up, `calling` when even the last calls have to end.
type run struct {
	*Worker
	leaseMS  int64
	called   string // The worker's name.
	places   *places
	working  sync.WaitGroup // The jobs whose attempts have not ended.
	quitting <-chan struct{}

	stopping, handling, calling context.Context
	stop, abandon, hangUp       context.CancelFunc

	failing sync.Mutex
	failed  error
}

// valuesOf is a context with the values of another one, and without its end.
type valuesOf struct{ context.Context }

func (valuesOf) Deadline() (time.Time, bool) { return time.Time{}, false }
func (valuesOf) Done() <-chan struct{}       { return nil }
func (valuesOf) Err() error                  { return nil }

func (w *Worker) newRun(ctx context.Context) (*run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.check(); err != nil {
		return nil, err
	}
	w.started = true
	r := &run{Worker: w, leaseMS: milliseconds(w.lease()), called: w.name(),
		places: newPlaces(w.jobs(), len(groups(w.Pool, w.keys))), quitting: w.giveUpChannel()}
	r.stopping, r.stop = context.WithCancel(ctx)
	r.handling, r.abandon = context.WithCancel(valuesOf{ctx})
	r.calling, r.hangUp = context.WithCancel(valuesOf{ctx})
	return r, nil
}

func (r *run) close() {
	r.stop()
	r.abandon()
	r.hangUp()
}

// begin starts a taking loop for each group of queues, and returns a channel that is closed when all loops
// and all jobs have ended.
func (r *run) begin() <-chan struct{} {
	var taking sync.WaitGroup
	for _, group := range groups(r.Pool, r.keys) {
		t := &taker{run: r, keys: group, ended: make(chan struct{})}
		taking.Add(1)
		go func() {
			defer taking.Done()
			t.loop()
		}()
		go t.wake()
	}
	go func() {
		select {
		case <-r.quitting:
			r.stop()
		case <-r.stopping.Done():
		}
	}()
	ended := make(chan struct{})
	go func() {
		taking.Wait()
		r.working.Wait()
		close(ended)
	}()
	return ended
}

// finish waits for the running jobs, and gives them up at the end of the grace or by GiveUp.
func (r *run) finish(ended <-chan struct{}) {
	var grace <-chan time.Time
	if r.Grace > 0 {
		timer := time.NewTimer(r.Grace)
		defer timer.Stop()
		grace = timer.C
	}
	select {
	case <-ended:
		return
	case <-grace:
	case <-r.quitting:
	}
	r.abandon()
	select {
	case <-ended:
	case <-time.After(lastCalls):
	}
}

// groups divides queues into groups. One TW.TAKE can ask for a group: in a cluster the queues of one slot.
func groups(pool Pool, keys []string) [][]string {
	if _, ok := pool.(*Cluster); !ok {
		return [][]string{keys}
	}
	var all [][]string
	place := make(map[int]int)
	for _, key := range keys {
		at, known := place[Slot(key)]
		if !known {
			at = len(all)
			place[Slot(key)] = at
			all = append(all, nil)
		}
		all[at] = append(all[at], key)
	}
	return all
}

// One job

// work calls the handler, and ends the attempt unless it was given up meanwhile.
func (r *run) work(job *Job) {
	defer r.places.end()
	ctx, cancel := r.contextOf(job)
	defer cancel()
	returned := make(chan struct{})
	go r.accompany(ctx, job, cancel, returned)
	err := errExited
	defer func() { // The handler may end the goroutine.
		close(returned)
		job.ending.Lock()
		defer job.ending.Unlock()
		if job.claim() {
			r.end(job, r.inTime(ctx, job, err))
			return
		}
		if job.late.Load() || job.done.Load() {
			r.working.Done()
		}
		if job.done.Load() && err != nil {
			r.logf("tickwheel: %s of %s is done, and its handler failed after the acknowledgement: %v", job.ID,
				job.Queue, err)
		}
	}()
	err = r.callHandler(ctx, job)
}

// contextOf returns the context of a handler, whose time limit begins now.
func (r *run) contextOf(job *Job) (context.Context, context.CancelFunc) {
	if limit, limited := r.limits[job.Queue]; limited {
		return context.WithTimeout(r.handling, limit)
	}
	return context.WithCancel(r.handling)
}

// inTime returns the error of a handler that has returned. One that has returned since its time limit is over has the
// error of the limit, as if it had not returned yet.
func (r *run) inTime(ctx context.Context, job *Job, err error) error {
	if isOver(ctx) && errors.Is(err, context.DeadlineExceeded) && !isOwnWish(err) {
		return limitError(r.limits[job.Queue])
	}
	return err
}

// isOver says that the time limit of a handler is over.
func isOver(ctx context.Context) bool { return ctx.Err() == context.DeadlineExceeded }

// errExited is the error of a handler that has called runtime.Goexit, as the FailNow of a test does.
var errExited = errors.New("the handler has ended its goroutine")

// callHandler turns a panic into an error, so that the worker lives on. That is so for panic(nil) too, which
// recover cannot tell from no panic.
func (r *run) callHandler(ctx context.Context, job *Job) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		value := recover()
		r.logf("tickwheel: the handler of %s panicked at the task %s: %v\n%s", job.Queue, job.ID, value,
			debug.Stack())
		err = &panicError{value}
	}()
	err = r.handlers[job.Queue](ctx, job)
	returned = true
	return err
}

// end tells the server how the attempt has ended.
func (r *run) end(job *Job, err error) {
	defer r.working.Done()
	r.tell(job, err)
}

func (r *run) tell(job *Job, err error) {
	switch {
	case job.NotYours():
		r.counts.notYours.Add(1)
	case err == nil:
		r.acknowledge(job)
	case backWords(err) != nil:
		r.giveBack(job, backWords(err)...)
	case r.handling.Err() != nil && !isOwnWish(err):
		r.giveBack(job, "BACK")
	default:
		r.fail(job, err)
	}
}

// acknowledge counts a reply of 0 as done after a call whose reply was lost: the first call has ended the
// attempt.
func (r *run) acknowledge(job *Job) {
	reply, unsure, err := r.send(job, "TW.ACK")
	n, err := redis.Int(reply, err)
	if err == nil && (n == 1 || unsure) {
		r.counts.done.Add(1)
	} else {
		r.counts.notYours.Add(1)
	}
}

// fail counts by the reply: 0 says that the task is dead, nil that the task was not yours.
func (r *run) fail(job *Job, cause error) {
	reply, unsure, err := r.send(job, "TW.NACK", failure(cause)...)
	next, err := redis.Int64(reply, err)
	switch {
	case err == redis.ErrNil && unsure, err == nil && next != 0:
		r.counts.failed.Add(1)
	case err == nil:
		r.counts.failed.Add(1)
		r.counts.died.Add(1)
	default:
		r.counts.notYours.Add(1)
	}
}

// giveBack makes a task ready again for other workers, or lets it wait. The attempt does not count.
func (r *run) giveBack(job *Job, words ...interface{}) {
	reply, unsure, err := r.send(job, "TW.NACK", words...)
	if err == nil && (reply != nil || unsure) {
		r.counts.back.Add(1)
	} else {
		r.counts.notYours.Add(1)
	}
}

// send sends a command about the attempt until the server has replied. `unsure` says that a former call may
// have been carried out although its reply did not come. The error is one that stays, or that of the last call.
func (r *run) send(job *Job, command string, words ...interface{}) (reply interface{}, unsure bool, err error) {
	args := append(redis.Args{job.Queue, job.ID, job.Token}, words...)
	return r.insist(job.Queue, command, args, func(err error) bool { return r.isFatal(command, job.Queue, err) })
}

// insist sends a command until the server has replied, or an error stays.
func (r *run) insist(key, command string, args redis.Args, stays func(error) bool) (reply interface{}, unsure bool,
	err error) {
	pause := backoff{most: r.longestPause()}
	for {
		reply, err = r.callKey(r.calling, key, command, args)
		if err == nil || stays(err) {
			return reply, unsure, err
		}
		unsure = unsure || errorCode(err) == ""
		if !pause.wait(r.calling.Done()) {
			return nil, unsure, err
		}
	}
}

// call sends a command about the attempt once.
func (r *run) call(ctx context.Context, job *Job, command string, words ...interface{}) (interface{}, error) {
	return r.callKey(ctx, job.Queue, command, append(redis.Args{job.Queue, job.ID, job.Token}, words...))
}

func (r *run) callKey(ctx context.Context, key, command string, args redis.Args) (interface{}, error) {
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return call(limited, r.Pool, key, command, args)
}

// Errors

// lasts says that the error would come again. Redirections of a Cluster go away.
func (r *run) lasts(err error) bool { return r.advice(err) != "" }

func (r *run) advice(err error) string {
	if _, ok := r.Pool.(*Cluster); ok && parseRedirection(err) != nil {
		return ""
	}
	return lastingAdvice(err)
}

// staysForScript says that the script of a handler shall not be sent again. Such an error is the handler's.
func (r *run) staysForScript(err error) bool {
	if r.lasts(err) {
		return true
	}
	r.logf("tickwheel: AckThen: %v; trying again", err)
	return false
}

// isFatal ends the worker if the error is one that stays, and else writes it to the log.
func (r *run) isFatal(command, keys string, err error) bool {
	err = fmt.Errorf("tickwheel: %s of %s: %w", command, keys, err)
	help := r.advice(err)
	if help == "" {
		if !errors.Is(err, context.Canceled) {
			r.logf("%v; trying again", err)
		}
		return false
	}
	r.failing.Lock()
	defer r.failing.Unlock()
	if r.failed == nil {
		r.failed = fmt.Errorf("%w (%s)", err, help)
	}
	r.stop()
	return true
}

// failure is the error that has ended the worker; nil after a graceful stop.
func (r *run) failure() error {
	r.failing.Lock()
	defer r.failing.Unlock()
	return r.failed
}
