// SPDX-License-Identifier: MIT

package tickwheel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"tickwheel"
)

// The tests of this file need a server with the module, and use keys that begin with "go:".
//
// TICKWHEEL_TEST_URL is its URL. TICKWHEEL_TEST_CLUSTER has host:port of a node of a cluster, and
// TICKWHEEL_TEST_SENTINEL host:port of a sentinel that calls its service "tw". A test without its server is
// skipped; tests/clients/test_go.py starts the servers.

var ctx = context.Background()

func given(t *testing.T, variable string) string {
	value := os.Getenv(variable)
	if value == "" {
		t.Skip(variable + " is not set")
	}
	return value
}

func newPool(t *testing.T) *redis.Pool {
	pool, err := tickwheel.NewPool(given(t, "TICKWHEEL_TEST_URL"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

func newQueue(t *testing.T) *tickwheel.Queue {
	return tickwheel.NewQueue(newPool(t), "go:"+t.Name())
}

// must stops the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is compares a reply with the expected one.
func is(t *testing.T, want, got interface{}, err error) {
	t.Helper()
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%#v: expected %#v", got, want)
	}
}

func put(t *testing.T, s *tickwheel.Queue, id, payload string, options ...tickwheel.Option) {
	t.Helper()
	made, err := s.Put(ctx, id, payload, options...)
	is(t, id, made, err)
}

// await polls until the condition holds.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come about")
		}
	}
}

func TestServerATaskFromPutToCancel(t *testing.T) {
	s := newQueue(t)
	due := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	put(t, s, "a", "one", tickwheel.At(due), tickwheel.More("two", "\x00\xff"), tickwheel.Every(time.Minute),
		tickwheel.Times(3), tickwheel.Burst, tickwheel.MaxLate(5*time.Second), tickwheel.Tries(2),
		tickwheel.Backoff{First: time.Second, Factor: 1.25, Max: time.Minute, Jitter: 5})
	task, err := s.Get(ctx, "a")
	must(t, err)
	if task.Remaining <= 0 || task.Remaining > time.Hour {
		t.Errorf("the rest is %v", task.Remaining)
	}
	task.Remaining = 0
	is(t, &tickwheel.Task{ID: "a", Due: due, Every: time.Minute, Times: 3, Kind: "workers", Missed: "burst",
		MaxLate: 5 * time.Second, Attempt: 0, State: tickwheel.StateWaiting, Next: due,
		Payload: [][]byte{[]byte("one"), []byte("two"), {0, 255}}}, task, nil)
	count, err := s.Count(ctx)
	is(t, int64(1), count, err)
	id, first, next, err := s.Next(ctx)
	is(t, "a", id, err)
	is(t, due, first, nil)
	is(t, due, next, nil)
	cancelled, err := s.Cancel(ctx, "a", "b")
	is(t, []int{1, 0}, cancelled, err)
	cancelled, err = s.Cancel(ctx)
	is(t, []int(nil), cancelled, err)
}

func TestServerNoSuchTask(t *testing.T) {
	s := newQueue(t)
	_, got := s.Get(ctx, "a")
	_, moved := s.Move(ctx, "a", tickwheel.In(0))
	_, _, _, next := s.Next(ctx)
	for _, err := range []error{got, moved, next} {
		if !errors.Is(err, tickwheel.ErrNoTask) {
			t.Errorf("%v", err)
		}
	}
}

func TestServerConditionsKeepATask(t *testing.T) {
	s := newQueue(t)
	hour, two := tickwheel.In(time.Hour), tickwheel.In(2*time.Hour)
	for _, c := range []struct {
		when      tickwheel.When
		condition tickwheel.Condition
		want      string
	}{{hour, tickwheel.XX, ""}, {hour, tickwheel.NX, "a"}, {hour, tickwheel.NX, ""}, {two, tickwheel.LT, ""},
		{two, tickwheel.GT, "a"}, {hour, tickwheel.XX, "a"}} {
		id, err := s.Put(ctx, "a", "v", c.when, c.condition)
		is(t, c.want, id, err)
	}
	for _, c := range []struct {
		when       tickwheel.When
		conditions []tickwheel.Condition
		want       bool
	}{{two, nil, true}, {hour, []tickwheel.Condition{tickwheel.GT}, false},
		{hour, []tickwheel.Condition{tickwheel.LT}, true}} {
		moved, err := s.Move(ctx, "a", c.when, c.conditions...)
		is(t, c.want, moved, err)
	}
}

func TestServerKeepsTheTimeOfATask(t *testing.T) {
	s := newQueue(t)
	_, err := s.Put(ctx, "a", "old", tickwheel.In(time.Hour), tickwheel.Every(time.Hour))
	must(t, err)
	before, err := s.Get(ctx, "a")
	must(t, err)
	id, err := s.Put(ctx, "a", "new", tickwheel.KeepDue(), tickwheel.Every(time.Minute))
	is(t, "a", id, err)
	after, err := s.Get(ctx, "a")
	is(t, before.Due, after.Due, err)
	is(t, "new", after.Text(), err)
	is(t, time.Minute, after.Every, err)
}

func TestServerMakesAnID(t *testing.T) {
	s := newQueue(t)
	id, err := s.Put(ctx, "", "v", tickwheel.In(time.Hour))
	must(t, err)
	task, err := s.Get(ctx, id)
	must(t, err)
	if id == "" || task.Text() != "v" {
		t.Errorf("%q, %v", id, task)
	}
}

func TestServerNamesAWrongValue(t *testing.T) {
	s := newQueue(t)
	for text, option := range map[string]tickwheel.Option{"TRIES is '0'": tickwheel.Tries(0),
		"IN is '-1'": tickwheel.In(-1), "EVERY is '0'": tickwheel.Every(0), "TIMES is 1": tickwheel.Times(1)} {
		if _, err := s.Put(ctx, "a", "v", option); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: expected %q", err, text)
		}
	}
	if count, err := s.Count(ctx); count != 0 || err != nil {
		t.Errorf("%d tasks, %v", count, err)
	}
}

func TestServerPutInATransaction(t *testing.T) {
	pool := newPool(t)
	s := tickwheel.NewQueue(pool, "{go:shop}:timeouts")
	conn := pool.Get()
	defer conn.Close()
	for _, end := range []string{"DISCARD", "EXEC"} {
		must(t, conn.Send("MULTI"))
		must(t, conn.Send("HSET", "{go:shop}:order:42", "state", "placed"))
		must(t, conn.Send("TW.PUT", s.PutArgs("order:42", "cancel", tickwheel.In(time.Hour))...))
		must(t, conn.Send("TW.MOVE", s.MoveArgs("order:42", tickwheel.In(time.Minute))...))
		must(t, conn.Send("TW.CANCEL", s.CancelArgs("order:41")...))
		reply, err := conn.Do(end)
		must(t, err)
		count, err := s.Count(ctx)
		if end == "DISCARD" {
			is(t, int64(0), count, err)
			continue
		}
		is(t, int64(1), count, err)
		is(t, []interface{}{int64(1), []byte("order:42"), int64(1), []interface{}{int64(0)}}, reply, nil)
	}
}

func TestServerPauseAndPromote(t *testing.T) {
	s := newQueue(t)
	for _, c := range []struct {
		do   func(context.Context) (bool, error)
		want bool
	}{{s.Pause, true}, {s.Pause, false}, {s.Resume, true}, {s.Resume, false}} {
		changed, err := c.do(ctx)
		is(t, c.want, changed, err)
	}
	for _, id := range []string{"a", "b", "c"} {
		put(t, s, id, "v", tickwheel.In(time.Hour))
	}
	for _, want := range []bool{true, false} {
		promoted, err := s.Promote(ctx, "a")
		is(t, want, promoted, err)
	}
	for _, want := range []int{2, 0} {
		promoted, err := s.PromoteAll(ctx)
		is(t, want, promoted, err)
	}
	task, err := s.Get(ctx, "a")
	must(t, err)
	is(t, tickwheel.StateReady, task.State, nil)
}

// kill gives the queue so many dead tasks, called 0, 1, 2 and so on.
func kill(t *testing.T, pool *redis.Pool, s *tickwheel.Queue, n int) {
	conn := pool.Get()
	defer conn.Close()
	for i := 0; i < n; i++ {
		must(t, conn.Send("TW.PUT", s.PutArgs(fmt.Sprint(i), "v")...))
	}
	_, err := conn.Do("")
	must(t, err)
	for begun := 0; begun < n; {
		words := redis.Args{1, s.Key(), "LEASE", 3600000, "COUNT", 10000, "BLOCK", 3000}
		taken, err := redis.Values(conn.Do("TW.TAKE", words...))
		must(t, err)
		for _, one := range taken {
			job := one.([]interface{})
			must(t, conn.Send("TW.NACK", s.Key(), job[1], job[2], "DEAD", "ERROR", "no"))
		}
		_, err = conn.Do("")
		must(t, err)
		begun += len(taken)
	}
}

func TestServerDeadTasks(t *testing.T) {
	pool := newPool(t)
	s := tickwheel.NewQueue(pool, "go:dead")
	began := time.Now().Truncate(time.Millisecond)
	kill(t, pool, s, 5)
	dead, err := s.Dead(ctx, 2, "1")
	must(t, err)
	if len(dead) != 2 || dead[0].ID != "2" || dead[1].ID != "3" || dead[0].Error != "no" ||
		dead[0].Attempt != 1 || dead[0].Dead.Before(began) || dead[0].Dead.After(time.Now()) ||
		dead[0].Due.After(dead[0].Dead) {
		t.Errorf("%+v", dead)
	}
	replayed, err := s.Replay(ctx, "0", tickwheel.In(time.Hour))
	is(t, true, replayed, err)
	replayed, err = s.Replay(ctx, "0")
	is(t, false, replayed, err)
	purged, err := s.Purge(ctx, "1")
	is(t, true, purged, err)
	purged, err = s.Purge(ctx, "1")
	is(t, false, purged, err)
	all, err := s.PurgeAll(ctx)
	is(t, 3, all, err)
	all, err = s.ReplayAll(ctx)
	is(t, 0, all, err)
	_, err = s.Move(ctx, "0", tickwheel.In(0))
	must(t, err)
}

// TestServerManyDeadTasks has more of them than a call replays, and than EachDead asks for at a time.
func TestServerManyDeadTasks(t *testing.T) {
	const many = 13001
	pool := newPool(t)
	s := tickwheel.NewQueue(pool, "go:many")
	kill(t, pool, s, many)
	var shown []string
	err := s.EachDead(ctx, func(task tickwheel.DeadTask) error {
		shown = append(shown, task.ID)
		if len(shown)%1000 != 999 && len(shown) < 3000 { // Also the last of a page, behind which the next one begins.
			_, err := s.Purge(ctx, task.ID)
			return err
		}
		return nil
	})
	must(t, err)
	is(t, many, len(shown), nil)
	for i, id := range shown {
		is(t, fmt.Sprint(i), id, nil)
	}
	enough := errors.New("enough")
	if err := s.EachDead(ctx, func(tickwheel.DeadTask) error { return enough }); err != enough {
		t.Errorf("the error of the function is %v", err)
	}
	all, err := s.ReplayAll(ctx, tickwheel.In(time.Hour))
	is(t, many-2996, all, err)
}

// running is a worker of a test with a log that can be read.
type running struct {
	*tickwheel.Worker
	log  bytes.Buffer
	stop context.CancelFunc
	end  chan error
}

// valueKey is the key of a value in the context of Run.
type valueKey struct{}

func work(t *testing.T, pool tickwheel.Pool, queue string, handler tickwheel.Handler,
	options ...tickwheel.HandlerOption) *running {
	return workWith(t, &tickwheel.Worker{Pool: pool, Lease: time.Hour}, queue, handler, options...)
}

func workWith(t *testing.T, worker *tickwheel.Worker, queue string, handler tickwheel.Handler,
	options ...tickwheel.HandlerOption) *running {
	r := &running{Worker: worker, end: make(chan error, 1)}
	r.ErrorLog = log.New(&r.log, "", 0)
	r.Handle(queue, handler, options...)
	parent, stop := context.WithCancel(context.WithValue(ctx, valueKey{}, "value"))
	r.stop = stop
	t.Cleanup(stop)
	go func() { r.end <- r.Run(parent) }()
	return r
}

// stopped stops the worker, and compares its counts.
func (r *running) stopped(t *testing.T, want tickwheel.Counts) {
	t.Helper()
	r.stop()
	must(t, <-r.end)
	is(t, want, r.Counts(), nil)
}

func TestServerAHandlerSeesItsJob(t *testing.T) {
	s := newQueue(t)
	due := time.Now().Add(20 * time.Millisecond).Truncate(time.Millisecond)
	put(t, s, "a", "one", tickwheel.More("two"), tickwheel.At(due))
	seen := make(chan *tickwheel.Job, 1)
	r := work(t, newPool(t), s.Key(), func(ctx context.Context, job *tickwheel.Job) error {
		if ctx.Value(valueKey{}) != "value" {
			return errors.New("the values of Run's context are missing")
		}
		seen <- job
		return nil
	})
	job := <-seen
	if job.Queue != s.Key() || job.ID != "a" || job.Text() != "one" || string(job.Payload[1]) != "two" ||
		!job.Due.Equal(due) || job.Attempt != 1 || len(job.Token) != 16 || job.NotYours() {
		t.Errorf("%+v", job)
	}
	r.stopped(t, tickwheel.Counts{Done: 1})
}

func TestServerAContextThatHasEndedSendsNothing(t *testing.T) {
	s := newQueue(t)
	put(t, s, "a", "v") // Its connection is idle now.
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Cancel(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v: expected %v", err, context.Canceled)
	}
	if _, err := s.Get(ctx, "a"); err != nil {
		t.Error(err)
	}
}

func TestServerAPanicIsAFailure(t *testing.T) {
	s := newQueue(t)
	put(t, s, "a", "v", tickwheel.Tries(1))
	r := work(t, newPool(t), s.Key(), func(context.Context, *tickwheel.Job) error { panic("no map") })
	await(t, func() bool { return r.Counts().Died == 1 })
	r.stopped(t, tickwheel.Counts{Failed: 1, Died: 1})
	dead, err := s.Dead(ctx, 0, "")
	must(t, err)
	if len(dead) != 1 || dead[0].Error != "panic: no map" || !strings.Contains(r.log.String(), "server_test.go") {
		t.Errorf("%+v\n%s", dead, r.log.String())
	}
}

func TestServerAHandlerThatDoesNotReturnHasFailed(t *testing.T) {
	s := newQueue(t)
	put(t, s, "exit", "v", tickwheel.Tries(1))
	put(t, s, "nil", "v", tickwheel.Tries(1))
	r := work(t, newPool(t), s.Key(), func(_ context.Context, job *tickwheel.Job) error {
		if job.ID == "exit" {
			runtime.Goexit()
		}
		panic(nil)
	})
	await(t, func() bool { return r.Counts().Died == 2 })
	r.stopped(t, tickwheel.Counts{Failed: 2, Died: 2})
}

func TestServerWrappedWishesCount(t *testing.T) {
	s := newQueue(t)
	put(t, s, "a", "v")
	r := work(t, newPool(t), s.Key(), func(_ context.Context, job *tickwheel.Job) error {
		if job.Attempt == 1 {
			return fmt.Errorf("mail: %w", tickwheel.Retry(0, errors.New("busy")))
		}
		return fmt.Errorf("mail: %w", tickwheel.Dead(errors.New("no address")))
	})
	await(t, func() bool { return r.Counts().Died == 1 })
	r.stopped(t, tickwheel.Counts{Failed: 2, Died: 1})
	task, err := s.Get(ctx, "a")
	must(t, err)
	is(t, "*errors.errorString: no address", task.Error, nil)
	is(t, 2, task.Attempt, nil)
}

// TestServerAHandlerThatDoesNotReturnIsGivenUp: its context ends, and its task goes back without it.
func TestServerAHandlerThatDoesNotReturnIsGivenUp(t *testing.T) {
	s := newQueue(t)
	put(t, s, "deaf", "v")
	put(t, s, "done", "v")
	put(t, s, "wish", "v")
	put(t, s, "wise", "v")
	begun, never := make(chan string, 4), make(chan struct{})
	defer close(never)
	r := work(t, newPool(t), s.Key(), func(ctx context.Context, job *tickwheel.Job) error {
		begun <- job.ID
		<-ctx.Done()
		switch job.ID {
		case "deaf":
			<-never
		case "wise":
			return ctx.Err()
		case "wish":
			return tickwheel.Dead(ctx.Err())
		}
		return nil
	})
	for i := 0; i < 4; i++ {
		<-begun
	}
	r.GiveUp()
	r.GiveUp()
	must(t, <-r.end)
	is(t, tickwheel.Counts{Done: 1, Failed: 1, Died: 1, Back: 2}, r.Counts(), nil)
	for _, id := range []string{"deaf", "wise"} {
		task, err := s.Get(ctx, id)
		must(t, err)
		if task.State != tickwheel.StateReady || task.Attempt != 0 {
			t.Errorf("%+v", task)
		}
	}
}

// TestServerAWorkerBeforeItsServer: the first two connections are refused.
func TestServerAWorkerBeforeItsServer(t *testing.T) {
	s := newQueue(t)
	put(t, s, "a", "v")
	real, dials := newPool(t), make(chan int, 1)
	dials <- 0
	pool := &redis.Pool{MaxIdle: 4, DialContext: func(ctx context.Context) (redis.Conn, error) {
		n := <-dials
		dials <- n + 1
		if n < 2 {
			return nil, errors.New("no server yet")
		}
		return real.DialContext(ctx)
	}}
	r := work(t, pool, s.Key(), func(context.Context, *tickwheel.Job) error { return nil })
	await(t, func() bool { return r.Counts().Done == 1 })
	r.stopped(t, tickwheel.Counts{Done: 1})
	is(t, 2, strings.Count(r.log.String(), "no server yet; trying again"), nil)
}

// TestServerOnlyItsWordEndsALease: a worker that is cut off goes on although its lease is over. It hears of the
// end when it can ask the server again.
func TestServerOnlyItsWordEndsALease(t *testing.T) {
	s := newQueue(t)
	put(t, s, "a", "v", tickwheel.Backoff{First: time.Hour, Factor: 1, Max: time.Hour}) // No second attempt comes.
	real := newPool(t)
	var dials, refused atomic.Int32
	var back atomic.Bool
	pool := &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) { // Each call dials.
		if dials.Add(1) > 1 && !back.Load() { // The first call takes the task.
			refused.Add(1)
			return nil, errors.New("no server")
		}
		return real.DialContext(ctx)
	}}
	told := make(chan bool, 1)
	r := workWith(t, &tickwheel.Worker{Pool: pool, Lease: 300 * time.Millisecond}, s.Key(),
		func(ctx context.Context, job *tickwheel.Job) error {
			<-ctx.Done()
			told <- job.NotYours()
			return nil
		})
	await(t, func() bool {
		task, err := s.Get(ctx, "a")
		must(t, err)
		return task.State == tickwheel.StateWaiting
	})
	begun := refused.Load()
	await(t, func() bool { return refused.Load() > begun+10 })
	select {
	case <-told:
		t.Error("the lease was given up without the server")
	default:
		back.Store(true)
		is(t, true, <-told, nil)
	}
	r.stopped(t, tickwheel.Counts{NotYours: 1})
}

func TestServerInACluster(t *testing.T) {
	cluster := &tickwheel.Cluster{Addrs: []string{given(t, "TICKWHEEL_TEST_CLUSTER")}}
	defer cluster.Close()
	worker := &tickwheel.Worker{Pool: cluster, Jobs: 2}
	const many = 6
	for i := 0; i < many; i++ {
		s := tickwheel.NewQueue(cluster, fmt.Sprintf("{go:%d}:work", i))
		put(t, s, "a", "v")
		worker.Handle(s.Key(), func(_ context.Context, job *tickwheel.Job) error {
			_, err := job.AckThen("return 1", []string{job.Queue + ":n", "{go:other}:n"})
			says(t, err, `the key "{go:other}:n" is in another slot than the queue "{go:`)
			_, err = job.AckThen(incr, []string{job.Queue + ":n"})
			return err
		})
	}
	conn, err := cluster.GetKey(ctx, "{go:0}:work")
	must(t, err)
	must(t, conn.Send("MULTI"))
	must(t, conn.Send("SET", "{go:0}:order", "placed"))
	must(t, conn.Send("TW.PUT", tickwheel.NewQueue(cluster, "{go:0}:work").PutArgs("b", "v")...))
	_, err = conn.Do("EXEC")
	must(t, err)
	conn.Close()
	running, stop := context.WithCancel(ctx)
	end := make(chan error)
	go func() { end <- worker.Run(running) }()
	await(t, func() bool { return worker.Counts().Done == many+1 })
	stop()
	must(t, <-end)
}

func TestServerBehindASentinel(t *testing.T) {
	sentinel := &tickwheel.Sentinel{Addrs: []string{given(t, "TICKWHEEL_TEST_SENTINEL")}, Service: "tw"}
	pool := &redis.Pool{DialContext: sentinel.DialContext, TestOnBorrow: tickwheel.TestPrimary, MaxIdle: 4}
	defer pool.Close()
	s := tickwheel.NewQueue(pool, "go:sentinel")
	put(t, s, "a", "v")
	r := work(t, pool, s.Key(), func(context.Context, *tickwheel.Job) error { return nil })
	await(t, func() bool { return r.Counts().Done == 1 })
	r.stopped(t, tickwheel.Counts{Done: 1})
}
