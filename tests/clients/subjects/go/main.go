// SPDX-License-Identifier: MIT

// The worker of the Go library that the tests of all languages drive; tests/clients/subject.py describes its
// options, its lines and the acts of its handler.
package main

import (
	"context"
	"crypto/sha1"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"

	"tickwheel"
)

var (
	url       = flag.String("url", "", "")
	sentinels = flag.String("sentinel", "", "")
	service   = flag.String("service", "", "")
	cluster   = flag.Bool("cluster", false, "")
	jobs      = flag.Int("jobs", 0, "")
	lease     = flag.Int("lease", 0, "")
	name      = flag.String("name", "", "")
	grace     = flag.Int("grace", 0, "")
	timeout   = flag.Int("timeout", 0, "")
)

func main() {
	flag.Parse()
	pool, err := newPool()
	if err == nil {
		err = work(pool, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newPool() (tickwheel.Pool, error) {
	if *sentinels != "" {
		sentinel := &tickwheel.Sentinel{Addrs: strings.Split(*sentinels, ","), Service: *service}
		return &redis.Pool{DialContext: sentinel.DialContext, TestOnBorrow: tickwheel.TestPrimary, MaxIdle: 4}, nil
	}
	if !*cluster {
		return tickwheel.NewPool(*url)
	}
	_, address, options, err := tickwheel.ParseURL(*url)
	return &tickwheel.Cluster{Addrs: []string{address}, Options: options}, err
}

func work(pool tickwheel.Pool, queues []string) error {
	worker := &tickwheel.Worker{Pool: pool, Jobs: *jobs, Lease: ms(*lease), Name: *name, Grace: ms(*grace)}
	var options []tickwheel.HandlerOption
	if *timeout > 0 {
		options = append(options, tickwheel.Timeout(ms(*timeout)))
	}
	for _, queue := range queues {
		worker.Handle(queue, handle, options...)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		stop()
		<-signals
		worker.GiveUp()
	}()
	fmt.Println("ready")
	if err := worker.Run(ctx); err != nil {
		return err
	}
	c := worker.Counts()
	fmt.Printf("stopped done=%d failed=%d died=%d back=%d not_yours=%d\n", c.Done, c.Failed, c.Died, c.Back, c.NotYours)
	return nil
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func handle(ctx context.Context, job *tickwheel.Job) error {
	say("begin", job)
	at := job.Attempt - 1
	if at >= len(job.Payload) {
		at = len(job.Payload) - 1
	}
	act, text, _ := strings.Cut(string(job.Payload[at]), " ")
	err := perform(ctx, job, act, text)
	switch {
	case ctx.Err() != nil && job.NotYours():
		say("not-yours", job)
	case ctx.Err() == nil:
		say("end", job)
	}
	return err
}

func perform(ctx context.Context, job *tickwheel.Job, act, text string) error {
	first, rest, _ := strings.Cut(text, " ")
	switch act {
	case "ok":
		return nil
	case "show":
		return show(job)
	case "fail":
		return errors.New(text)
	case "retry":
		delay, err := strconv.Atoi(first)
		if err != nil {
			return err
		}
		return tickwheel.Retry(ms(delay), errors.New(rest))
	case "notyet":
		delay, err := strconv.Atoi(rest)
		if _, missing := os.Stat(first); missing != nil && err == nil {
			return tickwheel.Back(ms(delay))
		}
		return err
	case "dead":
		return tickwheel.Dead(errors.New(text))
	case "until":
		return until(ctx, text)
	case "untilfail":
		if err := until(ctx, first); err != nil {
			return err
		}
		return errors.New(rest)
	case "untilack":
		if err := until(ctx, first); err != nil {
			return err
		}
		return acknowledge(job, rest)
	case "ackthen":
		return acknowledge(job, text)
	case "ackthenfail":
		if err := acknowledge(job, text); err != nil {
			return err
		}
		return errors.New("after its acknowledgement")
	case "die":
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return fmt.Errorf("unknown act: %s", act)
}

// acknowledge ends the job with a script, whose key stands before it.
func acknowledge(job *tickwheel.Job, text string) error {
	key, script, _ := strings.Cut(text, " ")
	reply, err := job.AckThen(script, []string{key})
	var broken *tickwheel.EffectError
	switch {
	case errors.Is(err, tickwheel.ErrReplyLost):
		fmt.Println("lost", job.Queue, job.ID)
	case errors.Is(err, tickwheel.ErrNotYours):
		fmt.Println("void", job.Queue, job.ID)
	case errors.As(err, &broken):
		fmt.Println("broken", job.Queue, job.ID)
	case err == nil:
		fmt.Println("acked", job.Queue, job.ID, reply)
	}
	return err
}

func show(job *tickwheel.Job) error {
	sum := sha1.New()
	for i, value := range job.Payload {
		if i > 0 {
			sum.Write([]byte("\n"))
		}
		sum.Write(value)
	}
	fmt.Printf("shown %s %s %x\n", job.Queue, job.ID, sum.Sum(nil))
	return nil
}

// until works until the file exists.
func until(ctx context.Context, path string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func say(word string, job *tickwheel.Job) {
	fmt.Println(word, job.Queue, job.ID, job.Attempt)
}
