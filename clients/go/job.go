// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// errorBytes is the length of an error that stays with a task, at most.
const errorBytes = 4096

// Handler does the work of a job. If it returns nil, the job is done. If it returns an error, the attempt has
// failed:
//
//   - an error made by Retry asks for the next attempt after a delay,
//   - an error made by Back says that it is too early, so that nothing has failed: the task comes again later,
//   - an error made by Dead asks for no further attempt,
//   - after any other error, and after a panic, the task waits for its own backoff.
//
// After the last of its tries a task that has failed is dead. The three errors may be wrapped.
//
// The context ends when the task is not yours any more (then job.NotYours() is true), when its time limit is over
// (then ctx.Err() is context.DeadlineExceeded), and when running work is given up; a handler that has stopped for that reason returns an error, for example ctx.Err(). The context has
// the values of Run's context, and neither its deadline nor its end: a graceful stop lets handlers finish.
type Handler func(ctx context.Context, job *Job) error

// Job is one attempt of a task. The fields are the handler's to read.
type Job struct {
	Queue         string
	ID            string
	Payload       [][]byte
	Due           time.Time // The due time of the task; the same in each attempt.
	Attempt       int       // The number of this attempt, from 1 on.
	MissedPeriods int64     // Further periods for which the call stands; the same in each attempt.
	Token         string    // The token of this attempt, for TW.ACK in a transaction or a script of your own.

	notYours atomic.Bool
	claimed  atomic.Bool
	acking   atomic.Bool // The handler acknowledges the job itself, or has done so.
	done     atomic.Bool // It has done so.
	late     atomic.Bool // Its time limit is over, and its handler runs on.
	ending   sync.Mutex  // Held while the handler acknowledges the job, and when the attempt ends.
	run      *run
}

// Text is the first value of the payload.
func (j *Job) Text() string { return firstText(j.Payload) }

// NotYours says that the task is not this worker's any more. It was cancelled, or the lease has run out. The
// result of the handler then counts for nothing.
func (j *Job) NotYours() bool { return j.notYours.Load() }

// claim is true for the first caller, who then ends the attempt.
func (j *Job) claim() bool { return j.claimed.CompareAndSwap(false, true) }

// RetryError is the error that Retry makes.
type RetryError struct {
	After  time.Duration
	Reason error
}

// Retry makes an error that asks for the next attempt after a delay, instead of after the task's backoff. The
// reason stays with the task as its error; it may be nil.
func Retry(after time.Duration, reason error) error { return &RetryError{after, reason} }

func (e *RetryError) Error() string { return fmt.Sprintf("retry after %v: %v", e.After, e.Reason) }

// Unwrap returns the reason.
func (e *RetryError) Unwrap() error { return e.Reason }

// BackError is the error that Back makes.
type BackError struct{ After time.Duration }

// Back makes an error that says that it is too early: the task is given back, and comes again after a delay.
// Nothing has failed, and the attempt does not count.
func Back(after time.Duration) error { return &BackError{after} }

func (e *BackError) Error() string { return fmt.Sprintf("back for %v", e.After) }

// DeadError is the error that Dead makes.
type DeadError struct{ Reason error }

// Dead makes an error that asks for no further attempt: the task is dead now. The reason stays with the task as
// its error; it may be nil.
func Dead(reason error) error { return &DeadError{reason} }

func (e *DeadError) Error() string { return fmt.Sprintf("dead: %v", e.Reason) }

// Unwrap returns the reason.
func (e *DeadError) Unwrap() error { return e.Reason }

// limitError is the error of an attempt whose time limit is over.
type limitError time.Duration

func (e limitError) Error() string {
	return fmt.Sprintf("the time limit of %v s is over", time.Duration(e).Seconds())
}

// panicError is the error of a handler that panicked.
type panicError struct{ value interface{} }

func (e *panicError) Error() string { return fmt.Sprint(e.value) }

// failure returns the words of TW.NACK for a handler's error.
func failure(err error) []interface{} {
	var retry *RetryError
	var dead *DeadError
	switch {
	case errors.As(err, &dead):
		return []interface{}{"DEAD", "ERROR", describe(dead.Reason)}
	case errors.As(err, &retry):
		return []interface{}{"IN", delay(retry.After), "ERROR", describe(retry.Reason)}
	}
	return []interface{}{"ERROR", describe(err)}
}

// delay is a delay in milliseconds. One that lies in the past is none.
func delay(after time.Duration) int64 {
	if ms := milliseconds(after); ms > 0 {
		return ms
	}
	return 0
}

// backWords returns the words of TW.NACK for a handler's error that gives the task back, or nil. A task that
// shall be dead, or has failed, is not given back.
func backWords(err error) []interface{} {
	var retry *RetryError
	var dead *DeadError
	var back *BackError
	if errors.As(err, &dead) || errors.As(err, &retry) || !errors.As(err, &back) {
		return nil
	}
	return []interface{}{"BACK", "IN", delay(back.After)}
}

// isOwnWish says that the handler itself has chosen what happens to the task.
func isOwnWish(err error) bool {
	var retry *RetryError
	var dead *DeadError
	return errors.As(err, &retry) || errors.As(err, &dead)
}

// describe is the text of an error with its type before it, as short as the server wants it.
func describe(err error) string {
	var panicked *panicError
	var limit limitError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &limit):
		return "TimeoutError: " + err.Error() // As in the other languages.
	case errors.As(err, &panicked):
		return cut("panic: " + err.Error())
	}
	return cut(fmt.Sprintf("%T: %v", err, err))
}

// cut shortens a text at the beginning of a character.
func cut(text string) string {
	if len(text) <= errorBytes {
		return text
	}
	end := errorBytes
	for end > errorBytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
