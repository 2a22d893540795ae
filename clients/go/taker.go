// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	blockTime = 5 * time.Second        // An idle worker makes one call in this time.
	turnsTime = time.Second            // Takers that compete for places have a turn each in this time.
	wakeTime  = 100 * time.Millisecond // At a stop the wait is ended once in this time, until it has ended.
	firstWait = 100 * time.Millisecond // Between two tries of a call that failed.
	maxWait   = 5 * time.Second        // No such wait is longer.

	shortestBlock = 100 * time.Millisecond
	shortestPause = 10 * time.Millisecond // Of heartbeats and results, however short the lease is.
)

// taker is a loop that takes the tasks of some queues, on a connection of its own that may block.
type taker struct {
	run   *run
	keys  []string
	ended chan struct{} // Closed at the end of the loop.

	conn   redis.Conn
	node   string       // In a cluster the address of the connection.
	asking string       // The address that ASK has named while the slot is on the move; else empty.
	mine   int64        // The connection's number in the server; 0 if it may not be used.
	id     atomic.Int64 // The same while TW.TAKE may wait; else 0.
}

func (t *taker) loop() {
	defer close(t.ended)
	defer t.drop()
	var pause backoff
	redirected := 0
	for t.run.stopping.Err() == nil {
		held := t.run.places.reserve(t.run.stopping.Done())
		if held == 0 {
			return
		}
		jobs, err := t.take(held)
		t.run.places.begin(len(jobs), held-len(jobs))
		if err == nil {
			pause, redirected = backoff{}, 0
			t.start(jobs)
			continue
		}
		t.drop()
		if t.run.stopping.Err() != nil || t.run.isFatal("TW.TAKE", strings.Join(t.keys, " "), err) {
			return
		}
		if redirected++; !t.follow(err) || redirected > redirections {
			pause.wait(t.run.stopping.Done())
		}
	}
}

// take waits for at most so many tasks as the taker has places.
func (t *taker) take(held int) ([]*Job, error) {
	if t.conn == nil {
		if err := t.connect(); err != nil {
			return nil, err
		}
	}
	args := redis.Args{len(t.keys)}.AddFlat(t.keys).Add("LEASE", t.run.leaseMS, "COUNT", held,
		"BLOCK", t.run.places.block().Milliseconds(), "NAME", t.run.called)
	if t.asking != "" {
		if err := t.conn.Send("ASKING"); err != nil {
			return nil, err
		}
	}
	t.id.Store(t.mine)
	reply, err := redis.DoWithTimeout(t.conn, blockTime+callTime, "TW.TAKE", args...)
	t.id.Store(0)
	if err != nil {
		if isDemoted(err) {
			hangUp(t.conn)
		}
		return nil, completed(err, t.node)
	}
	return parseJobs(reply)
}

// connect gets a connection, and asks for its number in the server, which a user may not be allowed to know.
func (t *taker) connect() error {
	conn, err := t.open()
	if err != nil {
		return err
	}
	id, err := redis.Int64(redis.DoWithTimeout(conn, callTime, "CLIENT", "ID"))
	if err != nil && conn.Err() != nil {
		conn.Close()
		return err
	}
	if t.asking != "" {
		id = 0 // CLIENT UNBLOCK would go to the node that has the slot.
	}
	t.conn, t.mine = conn, id
	return nil
}

func (t *taker) open() (redis.Conn, error) {
	cluster, ok := t.run.Pool.(*Cluster)
	switch {
	case !ok:
		return t.run.Pool.GetContext(t.run.stopping)
	case t.asking != "":
		t.node = t.asking
		return cluster.poolOf(t.asking).GetContext(t.run.stopping)
	}
	conn, node, err := cluster.getKey(t.run.stopping, t.keys[0])
	t.node = node
	return conn, err
}

func (t *taker) drop() {
	if t.conn != nil {
		t.conn.Close()
		t.conn = nil
	}
	t.asking = ""
}

// follow says that the queues of a cluster are on another node, which the next connection goes to.
func (t *taker) follow(err error) bool {
	cluster, ok := t.run.Pool.(*Cluster)
	if !ok || !cluster.Learn(err) {
		return false
	}
	if redirection := parseRedirection(err); redirection.ask {
		t.asking = redirection.address
	}
	return true
}

// start begins the jobs. After a stop it gives them back.
func (t *taker) start(jobs []*Job) {
	for _, job := range jobs {
		job.run = t.run
		t.run.working.Add(1)
		if t.run.stopping.Err() == nil {
			go t.run.work(job)
		} else {
			t.run.giveBack(job, "BACK")
			t.run.working.Done()
		}
	}
}

// wake ends the wait of TW.TAKE at a stop. A call may come a moment before TW.TAKE, so it is repeated.
func (t *taker) wake() {
	select {
	case <-t.ended:
		return
	case <-t.run.stopping.Done():
	}
	repeat := time.NewTicker(wakeTime)
	defer repeat.Stop()
	for {
		if id := t.id.Load(); id != 0 {
			ctx, cancel := context.WithTimeout(t.run.calling, callTime)
			_, err := call(ctx, t.run.Pool, t.keys[0], "CLIENT", redis.Args{"UNBLOCK", id})
			cancel()
			if errorCode(err) == "NOPERM" {
				return // The wait ends with its BLOCK.
			}
		}
		select {
		case <-t.ended:
			return
		case <-repeat.C:
		}
	}
}

// places are those for jobs at once, which all takers share. A taker asks for tasks only for places that it has
// reserved, and leaves some to the others.
type places struct {
	mu                          sync.Mutex
	jobs, takers, left, working int
	line                        []chan int // Of the takers that wait for places, in the order of their coming.
}

func newPlaces(jobs, takers int) *places { return &places{jobs: jobs, takers: takers, left: jobs} }

// reserve waits for places, and returns how many the caller has now; 0 if stop comes first.
func (p *places) reserve(stop <-chan struct{}) int {
	turn := make(chan int, 1)
	p.mu.Lock()
	p.line = append(p.line, turn)
	p.serve()
	p.mu.Unlock()
	select {
	case count := <-turn:
		return count
	case <-stop:
		return 0 // Nobody takes any more, so the places need not go to another taker.
	}
}

// serve gives the places that are left to the takers that wait. The caller holds the mutex.
func (p *places) serve() {
	for len(p.line) > 0 && p.left > 0 {
		count := p.jobs / p.takers
		if count == 0 {
			count = 1
		}
		if count > p.left {
			count = p.left
		}
		p.left -= count
		p.line[0] <- count
		p.line = p.line[1:]
	}
}

// begin says that some reserved places have jobs now, and that the others are free again.
func (p *places) begin(jobs, unused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working += jobs
	p.left += unused
	p.serve()
}

// end says that a job has ended.
func (p *places) end() { p.begin(-1, 1) }

// block is how long a taker may wait with its places. It keeps them from the others meanwhile. So where places
// may be short, the takers take turns, and each has one in about a second.
func (p *places) block() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	room := p.jobs - p.working
	if p.takers == 1 || room >= 2*p.takers || (p.working == 0 && room >= p.takers) {
		return blockTime
	}
	turn := shorter(turnsTime, turnsTime*time.Duration(room)/time.Duration(p.takers))
	if turn < shortestBlock {
		return shortestBlock
	}
	return turn
}

// backoff makes the waits between tries: each is twice as long as the one before, and none is longer than most.
type backoff struct {
	most   time.Duration // 0 stands for maxWait.
	next   time.Duration
	random *rand.Rand
}

// length is the length of the next wait. Half of it is random, so that many workers that have lost the same
// server do not come back together.
func (b *backoff) length() time.Duration {
	if b.random == nil {
		b.random = rand.New(rand.NewSource(time.Now().UnixNano()))
		b.next = firstWait
	}
	if b.most == 0 {
		b.most = maxWait
	}
	wait := shorter(b.next, b.most)
	b.next = shorter(2*b.next, b.most)
	return wait/2 + time.Duration(b.random.Int63n(int64(wait/2)+1))
}

// wait waits, and returns false if stop came first.
func (b *backoff) wait(stop <-chan struct{}) bool {
	timer := time.NewTimer(b.length())
	defer timer.Stop()
	select {
	case <-stop:
		return false
	case <-timer.C:
		return true
	}
}

func shorter(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}
