// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// The defaults and the ranges of a Worker's fields.
const (
	defaultLease = 30 * time.Second
	maxLease     = (1<<32 - 1) * time.Millisecond
	defaultJobs  = 4
	maxName      = 255
)

// Worker takes tasks that are ready, and calls a handler for each. Set the fields and call Handle before Run.
type Worker struct {
	// Pool has the connections. The worker keeps one for waiting (in a Cluster one for each slot of its
	// queues), and uses others for short calls. So MaxActive must be 0, or greater than Jobs.
	Pool Pool

	// Lease is the time in which another worker gets the task if this one has died, 1 ms to 1193 hours. While a
	// handler runs, the worker extends the lease after each third of it. The default is 30 seconds.
	Lease time.Duration

	// Jobs is the number of handlers that run at a time, 1 to 10,000. The default is 4.
	Jobs int

	// Name is shown by Queue.Get, at most 255 bytes. The default is host:pid.
	Name string

	// Grace is the time that running handlers have to finish after a stop. The default is as long as they need.
	Grace time.Duration

	// ErrorLog has a line for each failed call to the server, for each panic of a handler, and for each end of a time
	// limit. The default is the standard logger of the package log.
	ErrorLog *log.Logger

	mu       sync.Mutex
	handlers map[string]Handler
	limits   map[string]time.Duration // Of the handlers that have one.
	keys     []string
	started  bool
	givenUp  bool
	giveUp   chan struct{}
	counts   counters
}

// Counts are the attempts that a worker has ended since Run began.
type Counts struct {
	Done     int64 // The handler succeeded.
	Failed   int64 // The handler failed.
	Died     int64 // The handler failed, and the task is dead: these count as failed too.
	Back     int64 // The task was given back: it was not begun, or given up at the end. The attempt does not count.
	NotYours int64 // The task was not this worker's any more, so its result counts for nothing.
}

type counters struct{ done, failed, died, back, notYours atomic.Int64 }

// HandlerOption is an option of Worker.Handle: a Timeout.
type HandlerOption interface{ handle(w *Worker, queue string) }

// Timeout is the time limit of each attempt, at least 1 ms. When it is over, the attempt has failed, and the handler's
// context ends with context.DeadlineExceeded. Nobody can end the handler itself: it has its place of Jobs until it
// returns, and its result counts for nothing. If it has acknowledged its job by AckThen before, only the context ends.
type Timeout time.Duration

func (limit Timeout) handle(w *Worker, queue string) { w.limits[queue] = time.Duration(limit) }

// Handle names the handler for the tasks of a queue. The server is asked for tasks of the queues in the
// order of these calls. It panics if the handler is nil, if the queue has a handler, or if Run was called.
func (w *Worker) Handle(queue string, handler Handler, options ...HandlerOption) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case handler == nil:
		panic("tickwheel: the handler of " + queue + " is nil")
	case w.handlers[queue] != nil:
		panic("tickwheel: the queue " + queue + " has a handler already")
	case w.started:
		panic("tickwheel: Handle was called after Run")
	}
	if w.handlers == nil {
		w.handlers, w.limits = make(map[string]Handler), make(map[string]time.Duration)
	}
	w.handlers[queue] = handler
	w.keys = append(w.keys, queue)
	for _, option := range options {
		option.handle(w, queue)
	}
}

// Run works until ctx ends, and then stops gracefully: it takes no more, lets handlers finish, and returns nil.
// A wait for tasks ends at once if the user has the right to CLIENT UNBLOCK, and otherwise within 5 seconds. If
// Grace is over before the handlers have finished, they are given up as by GiveUp.
//
// Run goes on through failures of the connection and of the server, and tries again. Errors that stay end it as
// ctx does, for example a wrong password; then it returns the error, which says what to do.
//
// A worker runs once.
func (w *Worker) Run(ctx context.Context) error {
	r, err := w.newRun(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	ended := r.begin()
	<-r.stopping.Done()
	r.finish(ended)
	return r.failure()
}

// GiveUp stops the worker without waiting for handlers: their contexts end, and their tasks are given back for
// other workers. A handler that returns nil within a second has done its task all the same. GiveUp returns at
// once; Run returns within two seconds. It is for a second signal.
func (w *Worker) GiveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.givenUp {
		w.givenUp = true
		close(w.giveUpChannel())
	}
}

// giveUpChannel is closed by GiveUp. The caller holds the mutex.
func (w *Worker) giveUpChannel() chan struct{} {
	if w.giveUp == nil {
		w.giveUp = make(chan struct{})
	}
	return w.giveUp
}

// Counts returns the numbers so far. It may be called at any time.
func (w *Worker) Counts() Counts {
	c := &w.counts
	return Counts{c.done.Load(), c.failed.Load(), c.died.Load(), c.back.Load(), c.notYours.Load()}
}

// check refuses fields that are out of their range.
func (w *Worker) check() error {
	switch {
	case w.started:
		return errors.New("tickwheel: Run was called before: make another Worker")
	case w.Pool == nil:
		return errors.New("tickwheel: the worker has no Pool")
	case len(w.keys) == 0:
		return errors.New("tickwheel: the worker has no handler: call Handle before Run")
	case w.Lease != 0 && (w.Lease < time.Millisecond || w.Lease > maxLease):
		return fmt.Errorf("tickwheel: Lease is %v: expected 1ms to %v", w.Lease, maxLease)
	case w.Jobs < 0 || w.Jobs > oneCall:
		return fmt.Errorf("tickwheel: Jobs is %d: expected 1 to %d", w.Jobs, oneCall)
	case len(w.Name) > maxName:
		return fmt.Errorf("tickwheel: Name is %q: expected at most %d bytes", w.Name, maxName)
	case w.Grace < 0:
		return fmt.Errorf("tickwheel: Grace is %v: expected 0, which is no limit, or more", w.Grace)
	}
	return w.checkLimits()
}

func (w *Worker) checkLimits() error {
	for queue, limit := range w.limits {
		if limit < time.Millisecond {
			return fmt.Errorf("tickwheel: Timeout of %s is %v: expected 1ms or more", queue, limit)
		}
	}
	return nil
}

func (w *Worker) lease() time.Duration {
	if w.Lease == 0 {
		return defaultLease
	}
	return w.Lease
}

func (w *Worker) jobs() int {
	if w.Jobs == 0 {
		return defaultJobs
	}
	return w.Jobs
}

func (w *Worker) name() string {
	if w.Name != "" {
		return w.Name
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

func (w *Worker) logf(format string, args ...interface{}) {
	if w.ErrorLog != nil {
		w.ErrorLog.Printf(format, args...)
	} else {
		log.Printf(format, args...)
	}
}
