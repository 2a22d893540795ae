// SPDX-License-Identifier: MIT

// The surroundings of the blocks of docs/go.md, and the proof that each does as the page says. test_go.py
// writes the blocks beside this file: the program of the page, and `fragments`, a function for each other
// block.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"

	"tickwheel"
)

// url is the server that stands for the one of `make serve`.
var url = os.Getenv("TICKWHEEL_TEST_URL")

// fragment is a block of the page, with the variables that the page does not define.
type fragment func(context.Context, *redis.Pool, *tickwheel.Queue, *tickwheel.Worker) error

var (
	errBusy      = errors.New("the mail server is busy")
	errNight     = errors.New("nobody reads a mail at night")
	errNoAddress = errors.New("no such address")
	converting   = make(chan struct{}, 100)
)

func send(_ context.Context, to string) error {
	return map[string]error{"busy": errBusy, "asleep": errNight, "nobody": errNoAddress}[to]
}

// convert takes longer for each part than for the one before, so that the worker notices in one of them that
// the task is not its worker's any more.
func convert(_ string, part int) {
	converting <- struct{}{}
	<-time.After(time.Duration(part*part) * time.Millisecond)
}

// makeReport hangs, as calls over the network do.
func makeReport(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// cancelOrder is what runs when somebody stops the program.
func cancelOrder(context.Context, *tickwheel.Job) error {
	return syscall.Kill(os.Getpid(), syscall.SIGTERM)
}

// proof runs a block, and looks at its effect.
type proof struct {
	ctx    context.Context
	pool   *redis.Pool
	orders *tickwheel.Queue
	worker *tickwheel.Worker
	block  fragment
}

var proofs = []struct {
	name  string
	prove func(*proof)
}{
	{"options", (*proof).options}, {"transaction", (*proof).transaction}, {"failures", (*proof).failures},
	{"dead", (*proof).dead}, {"not yours", (*proof).notYours}, {"limit", (*proof).limit}, {"once", (*proof).once},
	{"stop", (*proof).stop},
	{"sentinel", (*proof).run}, {"cluster", (*proof).run},
}

// init runs the proofs instead of the program of the page if the environment asks for them.
func init() {
	if os.Getenv("TICKWHEEL_PROOFS") == "" {
		return
	}
	is(len(proofs), len(fragments))
	for i, one := range proofs {
		pool, err := tickwheel.NewPool(url)
		must(err)
		one.prove(&proof{context.Background(), pool, tickwheel.NewQueue(pool, "orders"),
			&tickwheel.Worker{Pool: pool, Lease: 90 * time.Millisecond}, fragments[i]})
		pool.Close()
		fmt.Println("proved:", one.name)
	}
	os.Exit(0)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func is(want, got interface{}) {
	if !reflect.DeepEqual(want, got) {
		panic(fmt.Sprintf("%v: expected %v", got, want))
	}
}

func (p *proof) run() { must(p.block(p.ctx, p.pool, p.orders, p.worker)) }

// work runs the worker of the block until its counts are these.
func (p *proof) work(want tickwheel.Counts) {
	ctx, stop := context.WithCancel(p.ctx)
	end := make(chan error)
	go func() { end <- p.worker.Run(ctx) }()
	patience, poll := time.After(time.Minute), time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for p.worker.Counts() != want {
		select {
		case <-poll.C:
		case <-patience:
			panic(fmt.Sprintf("%v: expected %v", p.worker.Counts(), want))
		}
	}
	stop()
	must(<-end)
	is(want, p.worker.Counts())
}

func (p *proof) put(key string, payloads ...string) *tickwheel.Queue {
	queue := tickwheel.NewQueue(p.pool, key)
	for _, payload := range payloads {
		_, err := queue.Put(p.ctx, payload, payload)
		must(err)
	}
	return queue
}

func (p *proof) options() {
	p.run()
	order, err := p.orders.Get(p.ctx, "order:42")
	must(err)
	is(true, order.Remaining > 29*time.Minute)
	p.run() // It prints that the order has a timeout.
	report, err := p.orders.Get(p.ctx, "report")
	must(err)
	is(24*time.Hour, report.Every)
	is(tickwheel.Coalesce, report.Missed)
	is(3, len(report.Payload))
}

func (p *proof) transaction() {
	p.run()
	_, err := tickwheel.NewQueue(p.pool, "{shop}:timeouts").Get(p.ctx, "order:43")
	must(err)
	conn := p.pool.Get()
	defer conn.Close()
	state, err := redis.String(conn.Do("HGET", "{shop}:order:43", "state"))
	must(err)
	is("placed", state)
}

func (p *proof) failures() {
	p.run()
	mails := p.put("mails", "ann", "busy", "asleep", "nobody")
	p.work(tickwheel.Counts{Done: 1, Failed: 2, Died: 1, Back: 1})
	busy, err := mails.Get(p.ctx, "busy")
	must(err)
	is(true, busy.Remaining > 50*time.Second)
	asleep, err := mails.Get(p.ctx, "asleep")
	must(err)
	is(true, asleep.Remaining > 50*time.Minute && asleep.Attempt == 0)
	nobody, err := mails.Get(p.ctx, "nobody")
	must(err)
	is("*errors.errorString: no such address", nobody.Error)
	_, err = mails.Cancel(p.ctx, "busy", "asleep", "nobody")
	must(err)
}

func (p *proof) dead() {
	p.worker.Jobs = 1 // So that "a" dies first.
	p.worker.Handle("orders", func(context.Context, *tickwheel.Job) error { return tickwheel.Dead(errBusy) })
	p.put("orders", "a", "b")
	p.work(tickwheel.Counts{Failed: 2, Died: 2})
	p.run()
	left, err := p.orders.Dead(p.ctx, 0, "")
	must(err)
	is(0, len(left))
	_, err = p.orders.Cancel(p.ctx, "a", "b")
	must(err)
}

func (p *proof) notYours() {
	p.run()
	films := p.put("films", "film")
	go func() {
		<-converting
		_, err := films.Cancel(p.ctx, "film")
		must(err)
	}()
	p.work(tickwheel.Counts{NotYours: 1})
}

func (p *proof) limit() {
	p.run()
	reports := p.put("reports", "today")
	p.work(tickwheel.Counts{Failed: 1})
	today, err := reports.Get(p.ctx, "today")
	must(err)
	is("TimeoutError: the time limit of 0.1 s is over", today.Error)
	_, err = reports.Cancel(p.ctx, "today")
	must(err)
}

func (p *proof) once() {
	p.run()
	p.put("{shop}:bills", "7")
	p.work(tickwheel.Counts{Done: 1})
	conn := p.pool.Get()
	defer conn.Close()
	paid, err := redis.Int(conn.Do("GET", "{shop}:paid"))
	must(err)
	is(7, paid)
}

func (p *proof) stop() {
	p.put("orders", "c")
	p.run()
	is(tickwheel.Counts{Done: 1}, p.worker.Counts())
}
