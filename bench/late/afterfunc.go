// SPDX-License-Identifier: MIT

// Go's time.AfterFunc, led by `measure` as late_bench is: afterfunc PENDING PROBES.
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"time"
)

const (
	every    = 20 * time.Millisecond
	ahead    = time.Second
	pending  = 15 * 24 * time.Hour
	patience = 2 * time.Minute
)

var words = bufio.NewScanner(os.Stdin)

// step says that the last step is done, and waits for the word that begins the next.
func step(done, next string) {
	fmt.Println(done)
	if !words.Scan() || words.Text() != next {
		fmt.Fprintln(os.Stderr, "afterfunc: the measuring program has gone")
		os.Exit(1)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, "usage: afterfunc PENDING PROBES")
		os.Exit(2)
	}
	return n
}

// probe files the probes, and returns how late each was called.
func probe(n int) []time.Duration {
	noted := make(chan time.Duration, n)
	from := time.Now().Add(ahead)
	for i := 0; i < n; i++ {
		within := time.Duration(rand.Int63n(int64(every/time.Microsecond))) * time.Microsecond
		due := from.Add(time.Duration(i)*every + within)
		time.AfterFunc(time.Until(due), func() { noted <- time.Since(due) })
	}
	all := make([]time.Duration, 0, n)
	end := time.After(ahead + time.Duration(n)*every + patience)
	for len(all) < n {
		select {
		case late := <-noted:
			all = append(all, late)
		case <-end:
			fmt.Fprintln(os.Stderr, "afterfunc: some probes were not called within two minutes")
			os.Exit(1)
		}
	}
	return all
}

func main() {
	if len(os.Args) != 3 {
		number("")
	}
	n, probes := number(os.Args[1]), number(os.Args[2])
	step("empty", "fill")
	timers := make([]*time.Timer, n)
	for i := range timers {
		timers[i] = time.AfterFunc(time.Hour+time.Duration(rand.Int63n(int64(pending))), func() {})
	}
	step("filled", "work")
	step("idle", "probe")
	for _, late := range probe(probes) {
		fmt.Println("late", late.Microseconds())
	}
	step("done", "end")
}
