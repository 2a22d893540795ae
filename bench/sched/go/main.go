// SPDX-License-Identifier: MIT

// Command schedbench is sched_bench (main.c) for Go's timers: time.AfterFunc, Timer.Stop. For keys it uses a
// map and a mutex, as a Go programmer would, and moves a key with Timer.Reset.
//
//	schedbench PENDING PRODUCERS SEED
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	operations = 2000000
	window     = 1000
	probes     = 1000
	probeEvery = 2 * time.Millisecond
)

type random uint64

func (r *random) draw() uint64 {
	*r ^= *r >> 12
	*r ^= *r << 25
	*r ^= *r >> 27
	return uint64(*r) * 2685821657736338717
}

func (r *random) far() time.Duration {
	return time.Hour + time.Duration(r.draw()%uint64(time.Hour))
}

type producer struct {
	number, first, count, operations int
	random                           random
	begun, ended                     time.Time
}

var (
	pending, producers int
	seed               uint64
	timers             []*time.Timer
	keys               []string
	keyed              map[string]*time.Timer
	keyedLock          sync.Mutex
	ignore             = func() {}
)

func print(load, metric string, value float64) {
	fmt.Printf("%s\t%s\t%.6g\n", load, metric, value)
}

func cpu() time.Duration {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func heapBytes() float64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// begin starts the producers, each on its share of the jobs. It returns a function that waits for them.
func begin(work func(*producer), operations int) func() time.Duration {
	all := make([]producer, producers)
	start := make(chan struct{})
	var ended sync.WaitGroup
	for i := range all {
		p := &all[i]
		*p = producer{number: i, first: pending / producers * i, count: pending / producers,
			operations: operations / producers}
		p.random = random((seed*64 + uint64(i) + 1) * 0x9E3779B97F4A7C15)
		ended.Add(1)
		go func() {
			<-start
			p.begun = time.Now()
			work(p)
			p.ended = time.Now()
			ended.Done()
		}()
	}
	close(start)
	return func() time.Duration {
		ended.Wait()
		begun, end := all[0].begun, all[0].ended
		for _, p := range all {
			if p.begun.Before(begun) {
				begun = p.begun
			}
			if p.ended.After(end) {
				end = p.ended
			}
		}
		return end.Sub(begun)
	}
}

func measure(load string, work func(*producer), operations int) {
	before := cpu()
	wall := begin(work, operations)()
	print(load, "ns", float64(wall.Nanoseconds())/float64(operations))
	print(load, "cpu_ns", float64((cpu()-before).Nanoseconds())/float64(operations))
}

func addAll(p *producer) {
	for i := 0; i < p.count; i++ {
		timers[p.first+i] = time.AfterFunc(p.random.far(), ignore)
	}
}

func again(job int, p *producer) {
	timers[job].Stop()
	timers[job] = time.AfterFunc(p.random.far(), ignore)
}

func churnOne(p *producer) {
	again(p.first+int(p.random.draw()%uint64(p.count)), p)
}

func churn(p *producer) {
	for i := 0; i < p.operations; i++ {
		churnOne(p)
	}
}

func inFlight(p *producer) {
	first := pending + p.number*window
	for i := 0; i < window; i++ {
		timers[first+i] = time.AfterFunc(p.random.far(), ignore)
	}
	for i := 0; i < p.operations; i++ {
		again(first+i%window, p)
	}
	for i := 0; i < window; i++ {
		timers[first+i].Stop()
	}
}

func keyAddAll(p *producer) {
	for i := 0; i < p.count; i++ {
		delay := p.random.far()
		keyedLock.Lock()
		keyed[keys[p.first+i]] = time.AfterFunc(delay, ignore)
		keyedLock.Unlock()
	}
}

func keyMove(p *producer) {
	for i := 0; i < p.operations; i++ {
		key, delay := keys[p.first+int(p.random.draw()%uint64(p.count))], p.random.far()
		keyedLock.Lock()
		keyed[key].Reset(delay)
		keyedLock.Unlock()
	}
}

// probe files a task every two milliseconds, due in 5 to 100 ms, and prints the lateness of these tasks.
func probe(load string) {
	r := random(seed + 77)
	var late [probes]int64
	var left sync.WaitGroup
	left.Add(probes)
	next := time.Now()
	for i := 0; i < probes; i++ {
		next = next.Add(probeEvery)
		time.Sleep(time.Until(next))
		i, delay := i, 5*time.Millisecond+time.Duration(r.draw()%95000000)
		due := time.Now().Add(delay)
		time.AfterFunc(delay, func() {
			late[i] = time.Since(due).Nanoseconds()
			left.Done()
		})
	}
	waitAtMost(func() { left.Wait() })
	sort.Slice(late[:], func(a, b int) bool { return late[a] < late[b] })
	if late[0] < 0 {
		fmt.Fprintf(os.Stderr, "go: a task ran %d ns early\n", -late[0])
		os.Exit(1)
	}
	print(load, "p50_us", float64(late[probes/2])/1000)
	print(load, "p99_us", float64(late[probes*99/100])/1000)
	print(load, "max_us", float64(late[probes-1])/1000)
}

// waitAtMost ends the program if a wait takes longer than a minute.
func waitAtMost(wait func()) {
	over := time.AfterFunc(time.Minute, func() {
		fmt.Fprintln(os.Stderr, "go: not all tasks ran within a minute")
		os.Exit(1)
	})
	wait()
	over.Stop()
}

func firing() {
	var seen int64
	var first, last time.Time
	done := make(chan struct{})
	callback := func() {
		switch atomic.AddInt64(&seen, 1) {
		case 1:
			first = time.Now()
		case int64(pending):
			last = time.Now()
			close(done)
		}
	}
	target := time.Now().Add(time.Second/2 + time.Duration(pending)*2500)
	begin(func(p *producer) {
		for i := 0; i < p.count; i++ {
			due := target.Add(time.Duration(p.random.draw() % (uint64(pending) * 10)))
			now := time.Now()
			if !now.Before(target) {
				fmt.Fprintln(os.Stderr, "go: adding took too long for the firing load")
				os.Exit(1)
			}
			timers[p.first+i] = time.AfterFunc(due.Sub(now), callback)
		}
	}, pending)()
	before := cpu()
	waitAtMost(func() { <-done })
	print("firing", "ns", float64(last.Sub(first).Nanoseconds())/float64(pending))
	print("firing", "cpu_ns", float64((cpu()-before).Nanoseconds())/float64(pending))
}

func stopAll() {
	for i := range timers {
		if timers[i] != nil {
			timers[i].Stop()
			timers[i] = nil
		}
	}
	time.Sleep(time.Millisecond)
	runtime.GC()
}

func number(name, word string, most int) int {
	value, err := strconv.Atoi(word)
	if err != nil || value < 1 || value > most {
		fmt.Fprintf(os.Stderr, "schedbench: %s is '%s': expected 1 to %d\n", name, word, most)
		os.Exit(2)
	}
	return value
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: schedbench PENDING PRODUCERS SEED")
		os.Exit(2)
	}
	producers = number("PRODUCERS", os.Args[2], 64)
	pending = number("PENDING", os.Args[1], 10000000) / producers * producers
	if pending == 0 {
		fmt.Fprintln(os.Stderr, "schedbench: fewer tasks than producers")
		os.Exit(2)
	}
	seed = uint64(number("SEED", os.Args[3], 1000000))
	timers = make([]*time.Timer, pending+producers*window)
	before := heapBytes()
	measure("add", addAll, pending)
	print("memory", "bytes", (heapBytes()-before)/float64(pending))
	measure("churn", churn, operations)
	measure("in_flight", inFlight, operations)
	probe("idle")
	var enough atomic.Bool
	join := begin(func(p *producer) {
		for !enough.Load() {
			churnOne(p)
		}
	}, 0)
	probe("load")
	enough.Store(true)
	join()
	stopAll()

	keys = make([]string, pending)
	for i := range keys {
		keys[i] = fmt.Sprintf("order:%010d", i)
	}
	keyed = make(map[string]*time.Timer)
	measure("key_add", keyAddAll, pending)
	measure("key_move", keyMove, operations)
	for _, timer := range keyed {
		timer.Stop()
	}
	keyed = nil
	stopAll()
	firing()
}
