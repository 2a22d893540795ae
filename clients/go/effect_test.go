// SPDX-License-Identifier: MIT

package tickwheel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"tickwheel"
)

const incr = "return redis.call('INCR', KEYS[1])"

// says compares the text of an error.
func says(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%v: expected %q", err, part)
	}
}

func TestServerAScriptWithTheAcknowledgement(t *testing.T) {
	s := newQueue(t)
	put(t, s, "a", "v")
	counter := []string{s.Key() + ":n"}
	r := work(t, newPool(t), s.Key(), func(_ context.Context, job *tickwheel.Job) error {
		_, err := job.AckThen("#!lua\nreturn 1", nil)
		says(t, err, `the script begins with "#!lua": expected Lua without such a line`)
		_, err = job.AckThen("this is no Lua", nil)
		says(t, err, "user_script")
		reply, err := redis.Values(job.AckThen(
			"return {redis.call('INCRBY', KEYS[1], ARGV[1]), ARGV[2], false}", counter, 5, "x"))
		is(t, []interface{}{int64(5), []byte("x"), nil}, reply, err)
		_, err = job.AckThen(incr, counter)
		says(t, err, "was acknowledged before: expected one AckThen")
		return errors.New("after that")
	})
	await(t, func() bool { return r.Counts().Done == 1 })
	r.stopped(t, tickwheel.Counts{Done: 1})
	if said := r.log.String(); !strings.Contains(said, "failed after the acknowledgement: after that") {
		t.Errorf("the log has %q", said)
	}
	count, err := s.Count(ctx)
	is(t, int64(0), count, err)
	_, err = new(tickwheel.Job).AckThen(incr, counter)
	says(t, err, "the job belongs to no worker")
}

func TestServerAScriptOfATaskThatIsNotYours(t *testing.T) {
	s := newQueue(t)
	put(t, s, "a", "v")
	r := work(t, newPool(t), s.Key(), func(_ context.Context, job *tickwheel.Job) error {
		_, err := s.Cancel(ctx, "a")
		must(t, err)
		for i := 0; i < 2; i++ {
			if _, err = job.AckThen(incr, []string{s.Key() + ":n"}); err != tickwheel.ErrNotYours || !job.NotYours() {
				t.Errorf("%v", err)
			}
		}
		return err
	})
	await(t, func() bool { return r.Counts().NotYours == 1 })
	r.stopped(t, tickwheel.Counts{NotYours: 1})
}

func TestServerHeartbeatsEndWithTheAcknowledgement(t *testing.T) {
	s := newQueue(t)
	put(t, s, "a", "v")
	put(t, s, "b", "v", tickwheel.In(time.Hour))
	r := workWith(t, &tickwheel.Worker{Pool: newPool(t), Lease: 3 * time.Second}, s.Key(),
		func(_ context.Context, job *tickwheel.Job) error {
			if job.ID == "b" { // It has a heartbeat while "a" goes on.
				begun, err := s.Get(ctx, "b")
				must(t, err)
				await(t, func() bool {
					task, err := s.Get(ctx, "b")
					must(t, err)
					return task.Next.After(begun.Next)
				})
				return nil
			}
			_, err := job.AckThen("redis.call('SET', KEYS[1], 1) return redis.error_reply('MINE no')",
				[]string{s.Key() + ":n"})
			var broken *tickwheel.EffectError
			if !errors.As(err, &broken) || broken.Text != "MINE no" {
				t.Errorf("%v", err)
			}
			_, err = s.Promote(ctx, "b")
			must(t, err)
			await(t, func() bool {
				_, err := s.Get(ctx, "b")
				return err == tickwheel.ErrNoTask
			})
			is(t, false, job.NotYours(), nil)
			return nil
		})
	await(t, func() bool { return r.Counts().Done == 2 })
	r.stopped(t, tickwheel.Counts{Done: 2})
}
