// SPDX-License-Identifier: MIT

package tickwheel

import (
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

// When is a due time: In or At. The zero value is now.
type When struct {
	word string
	ms   int64
}

// In is due so long from now. The server refuses a negative delay.
func In(delay time.Duration) When { return When{"IN", milliseconds(delay)} }

// At is due at this time, which may have passed: then the task is due at once. The server refuses a time before
// 1970 or after the year 9999.
func At(at time.Time) When {
	ms := at.UnixMilli()
	if at.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return When{"AT", ms}
}

func (w When) words() redis.Args {
	if w.word == "" {
		return redis.Args{"IN", 0}
	}
	return redis.Args{w.word, w.ms}
}

// milliseconds rounds away from zero: a delay is never cut short, and a negative one stays wrong.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	switch rest := d % time.Millisecond; {
	case rest > 0:
		ms++
	case rest < 0:
		ms--
	}
	return ms
}

// Option is an option of Queue.Put: a When, a Condition, a Missed, a Backoff, or a call of KeepDue, Every, Times,
// Tries, MaxLate or More. Each kind may be given once. The server refuses a value that is out of its
// range, and names the value and the range in its error.
type Option interface{ add(*filing) }

// filing collects the words of TW.PUT.
type filing struct {
	when  When
	words redis.Args
	more  []string
}

type optionFunc func(*filing)

func (f optionFunc) add(to *filing) { f(to) }

func (w When) add(to *filing) { to.when = w }

// Condition says what a task with the same id must be like, or else nothing is changed.
type Condition string

// The conditions. Move knows GT and LT alone.
const (
	NX Condition = "NX" // there is none. A dead task counts.
	XX Condition = "XX" // there is one.
	GT Condition = "GT" // it is due earlier than the new time, or there is none.
	LT Condition = "LT" // it is due later than the new time, or there is none.
)

func (c Condition) add(to *filing) { to.words = to.words.Add(string(c)) }

// KeepDue lets a task that exists keep its time, and gives it the new payload and options. It is for tasks that
// a program puts at each start. NX and XX may stand beside it.
func KeepDue() Option {
	return optionFunc(func(to *filing) { to.words = to.words.Add("KEEPDUE") })
}

// Every lets a task repeat: when a period ends, by success or by its death, the task is due again, so long
// after its last due time. At least 1 ms.
func Every(period time.Duration) Option {
	return optionFunc(func(to *filing) { to.words = to.words.Add("EVERY", milliseconds(period)) })
}

// Times limits a task of Every to n calls in all, at least 1.
func Times(n int64) Option {
	return optionFunc(func(to *filing) { to.words = to.words.Add("TIMES", n) })
}

// Tries is the number of failures until the task is dead, 1 to 1,000,000. The default is the server's setting
// tickwheel.tries, which is 20 unless changed.
func Tries(n int) Option {
	return optionFunc(func(to *filing) { to.words = to.words.Add("TRIES", n) })
}

// Missed says what becomes of periods that nobody could make in time, for example because the server was down.
type Missed string

// The treatments of missed periods.
const (
	Burst    Missed = "burst"    // each of them becomes ready, one after the other.
	Skip     Missed = "skip"     // none does.
	Coalesce Missed = "coalesce" // one call stands for all. The default.
)

func (m Missed) add(to *filing) { to.words = to.words.Add("MISSED", string(m)) }

// MaxLate drops a task, or a period of one that repeats, if its first attempt would begin later than that.
func MaxLate(after time.Duration) Option {
	return optionFunc(func(to *filing) { to.words = to.words.Add("MAXLATE", milliseconds(after)) })
}

// More gives the payload further values, after the first one. The handler finds all of them in Job.Payload.
func More(values ...string) Option {
	return optionFunc(func(to *filing) { to.more = append(to.more, values...) })
}

// NoJitter is the Jitter of waits that are neither longer nor shorter.
const NoJitter = -1

// Backoff says how long a task waits after a failed attempt. The default are the server's settings
// tickwheel.backoff-..., which wait for about 1, 2, 4, 8 seconds unless changed.
type Backoff struct {
	First  time.Duration // The wait after the first failed attempt, at least 1 ms.
	Factor float64       // Each further wait is so many times as long: 1 to 100, with at most two decimal places.
	Max    time.Duration // No wait is longer. At least 1 ms.
	Jitter int           // Makes each wait longer or shorter by up to so many percent: 1 to 100, or NoJitter.
	//                      0: as the server's setting tickwheel.jitter, which is 10 unless changed.
}

func (b Backoff) add(to *filing) {
	factor := strconv.FormatFloat(b.Factor, 'f', -1, 64)
	to.words = to.words.Add("BACKOFF", milliseconds(b.First), factor, milliseconds(b.Max))
	switch b.Jitter {
	case 0:
	case NoJitter:
		to.words = to.words.Add("JITTER", 0)
	default:
		to.words = to.words.Add("JITTER", b.Jitter)
	}
}
