// SPDX-License-Identifier: MIT

package tickwheel

import (
	"fmt"
	"math"
	"time"

	"github.com/gomodule/redigo/redis"
)

// State is the state of a task.
type State string

// The states of a task.
const (
	StateWaiting State = "waiting" // For its due time, or after a failed attempt for the next one.
	StateReady   State = "ready"   // It is due, and a worker may take it.
	StateLeased  State = "leased"  // A worker has it.
	StateDead    State = "dead"    // All its attempts have failed, or a worker said that it is dead.
)

// Task describes a task, as Queue.Get found it. Durations of more than 292 years read as 292 years.
type Task struct {
	ID        string
	Due       time.Time     // The same in each attempt.
	Remaining time.Duration // Until Next; 0 if that time has passed.
	Every     time.Duration // Between two periods; 0: the task runs once.
	Times     int64         // Calls left; -1: no end.
	Target    string        // The Stream or List of a task of TW.SEND; empty for a task for workers.
	Kind      string        // "workers"; of a task of TW.SEND "stream", "list" or "list left".
	MaxLen    int64         // MAXLEN of a task for a Stream; 0: none.
	Missed    Missed        // Burst, Skip or Coalesce; empty: it runs once.
	MaxLate   time.Duration // The time of MaxLate; negative: no limit.
	Attempt   int           // Attempts that have begun: 0 before the first.
	State     State
	Next      time.Time // When it can be taken next. Leased: the end of the lease. Dead: the zero time.
	Worker    string    // The name of the worker that has the task, or had it last.
	Error     string    // The last error.
	Payload   [][]byte

	MissedPeriods int64 // Further periods for which the call under way stands.
	Lapses        int   // Attempts that have lapsed: their leases ran out.
	Replaced      bool  // It stands behind the attempt of an older task, of which Attempt, Next and Worker are then.
}

// Text is the first value of the payload.
func (t *Task) Text() string { return firstText(t.Payload) }

func firstText(payload [][]byte) string {
	if len(payload) == 0 {
		return ""
	}
	return string(payload[0])
}

// reader reads the parts of a reply, and keeps the first error.
type reader struct{ err error }

func (r *reader) int(value interface{}) int64 {
	n, err := redis.Int64(value, nil)
	r.note(err)
	return n
}

// intOr reads a number that may be absent.
func (r *reader) intOr(value interface{}, absent int64) int64 {
	if value == nil {
		return absent
	}
	return r.int(value)
}

func (r *reader) text(value interface{}) string {
	text, err := redis.String(value, nil)
	r.note(err)
	return text
}

func (r *reader) time(value interface{}) time.Time { return time.UnixMilli(r.int(value)) }

func (r *reader) span(value interface{}) time.Duration { return duration(r.int(value)) }

func (r *reader) payload(value interface{}) [][]byte {
	values, err := redis.ByteSlices(value, nil)
	r.note(err)
	return values
}

// fields returns the elements of an array, at least so many: a newer server may append some. If the reply has
// fewer, the rest are nil, and the reader has an error.
func (r *reader) fields(value interface{}, err error, least int) []interface{} {
	found, err := redis.Values(value, err)
	r.note(err)
	if len(found) < least {
		r.note(fmt.Errorf("tickwheel: a reply has %d elements: expected %d", len(found), least))
		found = append(found, make([]interface{}, least-len(found))...)
	}
	return found
}

func (r *reader) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

// duration is so many ms, or the longest duration that Go has.
func duration(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// parseTask reads one element of TW.GET's reply. It leaves out names that it does not know.
func parseTask(id string, reply interface{}) (*Task, error) {
	var read reader
	task := &Task{ID: id}
	pairs := read.fields(reply, nil, 2)
	for at := 0; at+1 < len(pairs) && read.err == nil; at += 2 {
		task.set(&read, read.text(pairs[at]), pairs[at+1])
	}
	if read.err != nil {
		return nil, read.err
	}
	return task, nil
}

func (t *Task) set(read *reader, name string, value interface{}) {
	switch name {
	case "due":
		t.Due = read.time(value)
	case "remaining":
		t.Remaining = read.span(value)
	case "every":
		t.Every = duration(read.intOr(value, 0))
	case "times":
		t.Times = read.intOr(value, -1)
	case "maxlen":
		t.MaxLen = read.intOr(value, 0)
	case "max-late":
		t.MaxLate = duration(read.intOr(value, -1))
	case "attempt":
		t.Attempt = int(read.int(value))
	case "missed-periods":
		t.MissedPeriods = read.int(value)
	case "lapses":
		t.Lapses = int(read.int(value))
	case "replaced":
		t.Replaced = read.int(value) == 1
	case "next":
		if value != nil { // Dead: it has none.
			t.Next = read.time(value)
		}
	case "missed":
		if value != nil { // It runs once.
			t.Missed = Missed(read.text(value))
		}
	case "payload":
		t.Payload = read.payload(value)
	default:
		t.setText(read, name, value)
	}
}

func (t *Task) setText(read *reader, name string, value interface{}) {
	texts := map[string]*string{"target": &t.Target, "kind": &t.Kind, "worker": &t.Worker, "error": &t.Error,
		"state": (*string)(&t.State)}
	if text := texts[name]; text != nil {
		*text = read.text(value)
	}
}

// parseDead reads TW.DEAD's reply.
func parseDead(reply []interface{}) ([]DeadTask, error) {
	var read reader
	tasks := make([]DeadTask, 0, len(reply))
	for _, one := range reply {
		f := read.fields(one, nil, 7)
		tasks = append(tasks, DeadTask{ID: read.text(f[0]), Due: read.time(f[1]), Dead: read.time(f[2]),
			Attempt: int(read.int(f[3])), Error: read.text(f[4]), Lapses: int(read.int(f[5]))})
	}
	return tasks, read.err
}

// parseJobs reads TW.TAKE's reply. nil is a reply too: no task is ready.
func parseJobs(reply interface{}) ([]*Job, error) {
	if reply == nil {
		return nil, nil
	}
	var read reader
	var jobs []*Job
	for _, one := range read.fields(reply, nil, 0) {
		f := read.fields(one, nil, 7)
		jobs = append(jobs, &Job{Queue: read.text(f[0]), ID: read.text(f[1]), Token: read.text(f[2]),
			Due: read.time(f[3]), Attempt: int(read.int(f[4])), Payload: read.payload(f[5]),
			MissedPeriods: read.int(f[6])})
	}
	if read.err != nil {
		return nil, read.err
	}
	return jobs, nil
}
