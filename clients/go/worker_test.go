// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func nothing(context.Context, *Job) error { return nil }

func TestRunRefusesWrongFields(t *testing.T) {
	pool := &Cluster{}
	cases := map[string]*Worker{
		"no Pool":             {},
		"Lease is 1µs":        {Pool: pool, Lease: time.Microsecond},
		"Lease is -1s":        {Pool: pool, Lease: -time.Second},
		"Lease is 2400h0m0s":  {Pool: pool, Lease: 2400 * time.Hour},
		"Jobs is -1":          {Pool: pool, Jobs: -1},
		"Jobs is 10001":       {Pool: pool, Jobs: 10001},
		"at most 255 bytes":   {Pool: pool, Name: strings.Repeat("n", 256)},
		"Grace is -1ns":       {Pool: pool, Grace: -1},
		"Timeout of s is 0s":  {Pool: pool, limits: map[string]time.Duration{"s": 0}},
		"1µs: expected 1ms o": {Pool: pool, limits: map[string]time.Duration{"s": time.Microsecond}},
		"Run was called befo": {Pool: pool, started: true},
	}
	for text, worker := range cases {
		worker.handlers, worker.keys = map[string]Handler{"s": nothing}, []string{"s"}
		if err := worker.Run(background); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: expected %q", err, text)
		}
	}
	if err := (&Worker{Pool: pool}).Run(background); err == nil || !strings.Contains(err.Error(), "no handler") {
		t.Errorf("without handlers: %v", err)
	}
}

func TestHandlePanics(t *testing.T) {
	for text, call := range map[string]func(*Worker){
		"is nil":              func(w *Worker) { w.Handle("s", nil) },
		"a handler already":   func(w *Worker) { w.Handle("s", nothing); w.Handle("s", nothing) },
		"called after Run":    func(w *Worker) { w.started = true; w.Handle("s", nothing) },
		"handler of s is nil": func(w *Worker) { w.Handle("s", nil) },
	} {
		func() {
			defer func() {
				if value, _ := recover().(string); !strings.Contains(value, text) {
					t.Errorf("%q: expected %q", value, text)
				}
			}()
			call(&Worker{})
		}()
	}
}

func TestDefaults(t *testing.T) {
	w := &Worker{}
	if w.lease() != 30*time.Second || w.jobs() != 4 || !strings.Contains(w.name(), ":") {
		t.Errorf("%v, %d, %q", w.lease(), w.jobs(), w.name())
	}
}

// TestAHandlerThatEndsAtItsTimeLimit has the error of the limit, if it has failed by the end of its context.
func TestAHandlerThatEndsAtItsTimeLimit(t *testing.T) {
	over, cancel := context.WithTimeout(background, 0)
	defer cancel()
	going, cancel := context.WithCancel(background)
	defer cancel()
	own := errors.New("no paper")
	r := &run{Worker: &Worker{limits: map[string]time.Duration{"s": 1500 * time.Millisecond}}}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want string
	}{{over, over.Err(), "TimeoutError: the time limit of 1.5 s is over"},
		{over, fmt.Errorf("print: %w", over.Err()), "TimeoutError: the time limit of 1.5 s is over"},
		{over, own, "*errors.errorString: no paper"}, {over, nil, ""},
		{over, Dead(over.Err()), "*tickwheel.DeadError: dead: context deadline exceeded"},
		{going, over.Err(), "context.deadlineExceededError: context deadline exceeded"}} {
		if text := describe(r.inTime(c.ctx, &Job{Queue: "s"}, c.err)); text != c.want {
			t.Errorf("%q: expected %q", text, c.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	p, stop := newPlaces(2, 1), make(chan struct{})
	if p.reserve(stop) != 2 || p.left != 0 {
		t.Error("two places are not two")
	}
	woken := make(chan int)
	go func() { woken <- p.reserve(stop) }()
	p.begin(1, 1)
	if <-woken != 1 {
		t.Error("a place that is not used does not wake the one that waits")
	}
	go func() { woken <- p.reserve(stop) }()
	p.end()
	if <-woken != 1 {
		t.Error("the end of a job does not wake the one that waits")
	}
	close(stop)
	if p.reserve(stop) != 0 {
		t.Error("a stop does not end the wait")
	}
}

// TestTakersShareThePlaces: each of three takers has a place of its own among five. When jobs have all places
// but one, the takers have that one in turns, and none of them keeps it for long.
func TestTakersShareThePlaces(t *testing.T) {
	p := newPlaces(5, 3)
	if p.reserve(nil) != 1 || p.reserve(nil) != 1 || p.reserve(nil) != 1 || p.left != 2 {
		t.Error("three takers do not have three places of five")
	}
	for _, c := range []struct {
		jobs, takers, working int
		want                  time.Duration
	}{{5, 3, 0, blockTime}, {5, 3, 1, time.Second}, {4, 3, 3, time.Second / 3}, {2, 4, 0, time.Second / 2},
		{1, 100, 0, shortestBlock}, {100, 3, 90, blockTime}, {8, 1, 7, blockTime}} {
		p := newPlaces(c.jobs, c.takers)
		if p.begin(c.working, -c.working); p.block() != c.want {
			t.Errorf("%+v: %v", c, p.block())
		}
	}
}

func TestBackoffDoublesUpToItsEnd(t *testing.T) {
	var b backoff
	stopped := make(chan struct{})
	close(stopped)
	for _, want := range []time.Duration{200, 400, 800, 1600, 3200, 5000, 5000} {
		if b.wait(stopped); b.next != want*time.Millisecond {
			t.Errorf("the next wait is %v: expected %v", b.next, want*time.Millisecond)
		}
	}
}

func TestTheHandlersContextHasTheValuesAndNotTheEnd(t *testing.T) {
	type key struct{}
	parent, cancel := context.WithCancel(context.WithValue(background, key{}, "value"))
	cancel()
	ctx := valuesOf{parent}
	_, limited := ctx.Deadline()
	if limited || ctx.Err() != nil || ctx.Done() != nil || ctx.Value(key{}) != "value" {
		t.Error("the context has an end, or lacks its values")
	}
}
