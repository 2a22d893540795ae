// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"time"
)

// accompany extends the lease while the handler runs, and tells the handler when the task is not this worker's
// any more. If running work is given up, it waits a moment for the handler, whose context has ended, and then
// gives the task back without it. At the end of the time limit it fails the attempt.
func (r *run) accompany(ctx context.Context, job *Job, cancel context.CancelFunc, returned <-chan struct{}) {
	beat, pause := time.NewTimer(r.lease()/3), backoff{most: r.longestPause()}
	defer beat.Stop()
	givenUp, over := r.handling.Done(), time.NewTimer(patience)
	defer over.Stop()
	over.Stop()
	beats, ended := (<-chan time.Time)(beat.C), ctx.Done()
	for {
		select {
		case <-returned:
			return
		case <-ended:
			ended = nil
			if isOver(ctx) && r.expire(job) {
				beats = nil
			}
		case <-givenUp:
			givenUp = nil
			over.Reset(patience)
		case <-over.C:
			if job.claim() {
				r.end(job, context.Canceled)
			}
			return
		case <-beats:
			if job.acking.Load() { // The handler acknowledges it, and may fail to do so.
				beat.Reset(r.longestPause())
			} else if next := r.touch(job, cancel, &pause); !job.NotYours() {
				beat.Reset(next)
			}
		}
	}
}

// expire fails an attempt whose time limit is over, unless it has ended by itself. A handler that acknowledges its job
// at this moment may yet succeed. The handler keeps its place, and the worker, until it returns or is given up.
func (r *run) expire(job *Job) bool {
	job.ending.Lock()
	first := job.claim()
	job.late.Store(first)
	if first {
		r.working.Add(1) // Until the server knows it.
		defer r.working.Done()
	}
	job.ending.Unlock()
	if first {
		r.logf("tickwheel: %s of %s: %v", job.ID, job.Queue, limitError(r.limits[job.Queue]))
		r.tell(job, limitError(r.limits[job.Queue]))
	}
	return first
}

// touch gives the lease its full length again, and returns the time until the next heartbeat. Only the server's
// word ends a lease, however late it comes: a lease that ends while the server is down begins anew, once.
func (r *run) touch(job *Job, cancel context.CancelFunc, pause *backoff) time.Duration {
	sent := time.Now()
	reply, err := r.call(r.calling, job, "TW.TOUCH", "LEASE", r.leaseMS)
	switch {
	case err == nil && reply == nil && job.acking.Load():
		return r.longestPause()
	case err == nil && reply == nil:
		job.notYours.Store(true)
		cancel()
	case err == nil:
		*pause = backoff{most: pause.most}
		return time.Until(sent.Add(r.lease() / 3))
	case !r.isFatal("TW.TOUCH", job.Queue, err):
		return pause.length()
	}
	return r.lease() / 3 // After an error that stays the worker stops, and the running work goes on.
}

// longestPause is the longest wait after a heartbeat or a result that failed. The next call comes before the end
// of a lease that has begun anew.
func (r *run) longestPause() time.Duration {
	if r.lease() < 10*shortestPause {
		return shortestPause
	}
	return shorter(r.lease()/10, maxWait)
}
