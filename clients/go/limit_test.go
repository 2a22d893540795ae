// SPDX-License-Identifier: MIT

package tickwheel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"tickwheel"
)

const (
	soon = tickwheel.Timeout(20 * time.Millisecond)
	said = "TimeoutError: the time limit of 0.02 s is over"
)

var later = tickwheel.Backoff{First: time.Hour, Factor: 1, Max: time.Hour}

// hearing is a pool whose commands wait for before, which may change them or fail.
type hearing struct {
	*redis.Pool
	before func(command string, args []interface{}) error
}

func (h hearing) GetContext(ctx context.Context) (redis.Conn, error) {
	conn, err := h.Pool.GetContext(ctx)
	return &heard{conn, h.before}, err
}

type heard struct {
	redis.Conn
	before func(command string, args []interface{}) error
}

func (h *heard) DoWithTimeout(limit time.Duration, command string, args ...interface{}) (interface{}, error) {
	if err := h.before(command, args); err != nil {
		return nil, err
	}
	return redis.DoWithTimeout(h.Conn, limit, command, args...)
}

func (h *heard) ReceiveWithTimeout(limit time.Duration) (interface{}, error) {
	return redis.ReceiveWithTimeout(h.Conn, limit)
}

// TestServerATimeLimit: the attempt has failed when it is over, and the handler sees it. It has its place until it
// returns, and its result counts for nothing.
func TestServerATimeLimit(t *testing.T) {
	s, finish := newQueue(t), make(chan struct{})
	other := tickwheel.NewQueue(newPool(t), s.Key()+":other")
	put(t, s, "a", "v", later)
	put(t, other, "b", "v", tickwheel.In(time.Hour))
	worker := &tickwheel.Worker{Pool: newPool(t), Lease: time.Hour, Jobs: 1}
	worker.Handle(other.Key(), func(context.Context, *tickwheel.Job) error { return nil })
	r := workWith(t, worker, s.Key(), func(ctx context.Context, job *tickwheel.Job) error {
		<-ctx.Done()
		is(t, context.DeadlineExceeded, ctx.Err(), nil)
		is(t, false, job.NotYours(), nil)
		<-finish
		return nil
	}, soon)
	await(t, func() bool { return r.Counts() == tickwheel.Counts{Failed: 1} })
	task, err := s.Get(ctx, "a")
	is(t, said, task.Error, err)
	is(t, tickwheel.StateWaiting, task.State, nil)
	promoted, err := other.Promote(ctx, "b")
	is(t, true, promoted, err)
	task, err = other.Get(ctx, "b")
	is(t, tickwheel.StateReady, task.State, err) // Nobody has a place for it.
	close(finish)
	await(t, func() bool { return r.Counts().Done == 1 })
	r.stopped(t, tickwheel.Counts{Done: 1, Failed: 1})
	if text := r.log.String(); !strings.Contains(text, "the time limit of 0.02 s is over") {
		t.Errorf("the log has %q", text)
	}
}

// TestServerAStopWaitsForAHandlerBeyondItsTimeLimit: meanwhile another worker begins, works and ends.
func TestServerAStopWaitsForAHandlerBeyondItsTimeLimit(t *testing.T) {
	s, finish := newQueue(t), make(chan struct{})
	put(t, s, "a", "v", later)
	r := work(t, newPool(t), s.Key(), func(context.Context, *tickwheel.Job) error {
		<-finish
		return nil
	}, soon)
	await(t, func() bool { return r.Counts().Failed == 1 })
	r.stop()
	other := tickwheel.NewQueue(newPool(t), s.Key()+":other")
	put(t, other, "b", "v")
	second := work(t, newPool(t), other.Key(), func(context.Context, *tickwheel.Job) error { return nil })
	await(t, func() bool { return second.Counts().Done == 1 })
	second.stopped(t, tickwheel.Counts{Done: 1})
	is(t, 0, len(r.end), nil)
	close(finish)
	r.stopped(t, tickwheel.Counts{Failed: 1})
}

func TestServerAHandlerBeyondItsTimeLimitAndTheGrace(t *testing.T) {
	s, finish := newQueue(t), make(chan struct{})
	defer close(finish)
	put(t, s, "a", "v", later)
	worker := &tickwheel.Worker{Pool: newPool(t), Lease: time.Hour, Grace: time.Millisecond}
	r := workWith(t, worker, s.Key(), func(context.Context, *tickwheel.Job) error {
		<-finish
		return nil
	}, soon)
	await(t, func() bool { return r.Counts().Failed == 1 })
	r.stopped(t, tickwheel.Counts{Failed: 1})
}

// TestServerHandlersThatEndAtTheirTimeLimit: whether they or the worker are first, the error is the same.
func TestServerHandlersThatEndAtTheirTimeLimit(t *testing.T) {
	s := newQueue(t)
	for i := 0; i < 20; i++ {
		put(t, s, fmt.Sprint(i), "v", tickwheel.Tries(1))
	}
	worker := &tickwheel.Worker{Pool: newPool(t), Lease: time.Hour, Jobs: 20}
	r := workWith(t, worker, s.Key(), func(ctx context.Context, _ *tickwheel.Job) error {
		<-ctx.Done()
		return ctx.Err()
	}, soon)
	await(t, func() bool { return r.Counts().Died == 20 })
	r.stopped(t, tickwheel.Counts{Failed: 20, Died: 20})
	dead, err := s.Dead(ctx, 0, "")
	is(t, 20, len(dead), err)
	for _, task := range dead {
		is(t, said, task.Error, nil)
	}
}

func TestServerATimeLimitThatCannotBeTold(t *testing.T) {
	s := newQueue(t)
	put(t, s, "a", "v")
	var refused atomic.Bool
	pool := hearing{newPool(t), func(command string, _ []interface{}) error {
		if command != "TW.NACK" {
			return nil
		}
		refused.Store(true)
		return errors.New("away")
	}}
	worker := &tickwheel.Worker{Pool: pool, Lease: time.Hour, Grace: time.Millisecond}
	r := workWith(t, worker, s.Key(), func(ctx context.Context, _ *tickwheel.Job) error {
		<-ctx.Done()
		return ctx.Err()
	}, soon)
	await(t, refused.Load)
	r.stop()
	must(t, <-r.end)
	await(t, func() bool { return r.Counts() == tickwheel.Counts{NotYours: 1} })
}

func TestServerHeartbeatsEndWithTheTimeLimit(t *testing.T) {
	s, finish := newQueue(t), make(chan struct{})
	other := tickwheel.NewQueue(newPool(t), s.Key()+":other")
	put(t, s, "a", "v", later)
	put(t, other, "b", "v")
	var beats, beyond atomic.Int32
	pool := hearing{newPool(t), func(command string, args []interface{}) error {
		for i, word := range args {
			if word == "LEASE" {
				args[i+1] = 3600000 // It lasts, however slow this machine is.
			}
		}
		if command == "TW.TOUCH" && args[1] == "a" {
			beyond.Add(1)
		} else if command == "TW.TOUCH" {
			beats.Add(1)
		}
		return nil
	}}
	handler := func(context.Context, *tickwheel.Job) error {
		<-finish
		return nil
	}
	worker := &tickwheel.Worker{Pool: pool, Lease: 30 * time.Millisecond}
	worker.Handle(other.Key(), handler)
	r := workWith(t, worker, s.Key(), handler, soon)
	await(t, func() bool { return r.Counts().Failed == 1 })
	begun, before := beats.Load(), beyond.Load()
	await(t, func() bool { return beats.Load() > begun+5 })
	is(t, before, beyond.Load(), nil)
	close(finish)
	await(t, func() bool { return r.Counts().Done == 1 })
	r.stopped(t, tickwheel.Counts{Done: 1, Failed: 1})
}

// TestServerTheTimeLimitRestsDuringAScript, and ends with it. If the script is not done, the limit counts.
func TestServerTheTimeLimitRestsDuringAScript(t *testing.T) {
	s, over := newQueue(t), map[string]chan struct{}{"done": make(chan struct{}), "failed": make(chan struct{})}
	counter := []string{s.Key() + ":n"}
	for id := range over {
		put(t, s, id, "v", later)
	}
	pool := hearing{newPool(t), func(command string, args []interface{}) error {
		if command == "EVAL" {
			<-over[args[len(args)-2].(string)]
		}
		return nil
	}}
	var r *running
	begin := make(chan struct{})
	handler := func(ctx context.Context, job *tickwheel.Job) error {
		<-begin
		go func() {
			<-ctx.Done()
			close(over[job.ID])
		}()
		if job.ID == "done" {
			_, err := job.AckThen(incr, counter)
			must(t, err)
			return nil
		}
		_, err := job.AckThen("this is no Lua", nil)
		says(t, err, "user_script")
		await(t, func() bool { return r.Counts().Failed == 1 })
		_, err = job.AckThen(incr, counter)
		is(t, true, errors.Is(err, tickwheel.ErrNotYours), nil)
		return nil
	}
	r = workWith(t, &tickwheel.Worker{Pool: pool, Lease: time.Hour}, s.Key(), handler, soon)
	close(begin)
	await(t, func() bool { return r.Counts() == tickwheel.Counts{Done: 1, Failed: 1} })
	r.stopped(t, tickwheel.Counts{Done: 1, Failed: 1})
	task, err := s.Get(ctx, "failed")
	is(t, said, task.Error, err)
}
