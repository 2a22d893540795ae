// SPDX-License-Identifier: MIT

package tickwheel

import (
	"math"
	"reflect"
	"testing"
	"time"
)

func values(parts ...interface{}) []interface{} { return parts }

func bulk(text string) []byte { return []byte(text) }

func TestParseTask(t *testing.T) {
	reply := values(bulk("due"), int64(5000), bulk("remaining"), int64(math.MaxInt64), bulk("every"), int64(60000),
		bulk("times"), nil, bulk("target"), bulk(""), bulk("kind"), bulk("workers"), bulk("maxlen"), nil,
		bulk("missed"), bulk("skip"), bulk("max-late"), int64(7), bulk("attempt"), int64(2), bulk("state"),
		bulk("leased"), bulk("missed-periods"), int64(3), bulk("lapses"), int64(1), bulk("replaced"), int64(1),
		bulk("next"), int64(6000), bulk("worker"), bulk("w"), bulk("error"), bulk("no"),
		bulk("payload"), values(bulk("v"), bulk("")), bulk("of a newer server"), values())
	want := &Task{ID: "a", Due: time.UnixMilli(5000), Remaining: math.MaxInt64, Every: time.Minute, Times: -1,
		Kind: "workers", Missed: Skip, MaxLate: 7 * time.Millisecond, Attempt: 2, State: StateLeased,
		MissedPeriods: 3, Lapses: 1, Replaced: true, Next: time.UnixMilli(6000), Worker: "w", Error: "no", Payload: [][]byte{bulk("v"), bulk("")}}
	task, err := parseTask("a", reply)
	if err != nil || !reflect.DeepEqual(task, want) {
		t.Fatalf("%+v, %v: expected %+v", task, err, want)
	}
	if task.Text() != "v" || (&Task{}).Text() != "" {
		t.Error("Text is not the first value")
	}
}

func TestParseJobs(t *testing.T) {
	if jobs, err := parseJobs(nil); jobs != nil || err != nil {
		t.Errorf("nil is %v, %v", jobs, err)
	}
	token := "0123456789abcdef"
	one := values(bulk("s"), bulk("a"), bulk(token), int64(1), int64(3), values(bulk("v")), int64(5), bulk("newer"))
	jobs, err := parseJobs(values(one, one))
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%v, %v", jobs, err)
	}
	job := jobs[1]
	if job.Queue != "s" || job.ID != "a" || job.Token != token || job.Attempt != 3 ||
		job.MissedPeriods != 5 || !job.Due.Equal(time.UnixMilli(1)) || job.Text() != "v" {
		t.Errorf("%+v", job)
	}
}

func TestRepliesOfAnotherShapeAreErrors(t *testing.T) {
	for name, parse := range map[string]func() error{
		"short job":   func() error { _, err := parseJobs(values(values(bulk("s")))); return err },
		"no array":    func() error { _, err := parseJobs(bulk("s")); return err },
		"due a word":  func() error { _, err := parseTask("a", values(bulk("due"), bulk("soon"))); return err },
		"no payload":  func() error { _, err := parseTask("a", values(bulk("payload"), int64(1))); return err },
		"nil task":    func() error { _, err := parseTask("a", nil); return err },
		"short death": func() error { _, err := parseDead(values(values(bulk("a"), int64(1)))); return err },
	} {
		if parse() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestParseDead(t *testing.T) {
	dead, err := parseDead(values(values(bulk("a"), int64(1), int64(2), int64(3), bulk("no"), int64(2), nil, bulk("newer"))))
	want := []DeadTask{{"a", time.UnixMilli(1), time.UnixMilli(2), 3, "no", 2, time.Time{}}}
	if err != nil || !reflect.DeepEqual(dead, want) {
		t.Errorf("%v, %v", dead, err)
	}
}
