// SPDX-License-Identifier: MIT

package tickwheel

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gomodule/redigo/redis"
)

func joined(args redis.Args) string { return strings.TrimSuffix(fmt.Sprintln(args...), "\n") }

func TestPutArgs(t *testing.T) {
	noon := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	orders := NewQueue(nil, "orders")
	cases := []struct {
		want string
		args redis.Args
	}{
		{"orders a IN 0 PAYLOAD v", orders.PutArgs("a", "v")},
		{"orders * IN 1800000 PAYLOAD v", orders.PutArgs("", "v", In(30*time.Minute))},
		{"orders a AT 1893585600000 PAYLOAD v", orders.PutArgs("a", "v", At(noon))},
		{"orders a IN 2 NX PAYLOAD v w x",
			orders.PutArgs("a", "v", More("w"), NX, In(1500*time.Microsecond), More("x"))},
		{"orders a IN -1 XX PAYLOAD v", orders.PutArgs("a", "v", XX, In(-time.Nanosecond))},
		{"orders a IN 0 NX KEEPDUE EVERY 60000 PAYLOAD v",
			orders.PutArgs("a", "v", NX, KeepDue(), Every(time.Minute))},
		{"orders a IN 0 EVERY 60000 TIMES 3 MISSED coalesce PAYLOAD v",
			orders.PutArgs("a", "v", Every(time.Minute), Times(3), Coalesce)},
		{"orders a IN 0 EVERY 1 MISSED skip MAXLATE 5000 GT PAYLOAD v",
			orders.PutArgs("a", "v", Every(1), Skip, MaxLate(5*time.Second), GT)},
		{"orders a IN 0 TRIES 7 BACKOFF 500 1.5 60000 JITTER 20 LT PAYLOAD v", orders.PutArgs("a", "v", Tries(7),
			Backoff{First: 500 * time.Millisecond, Factor: 1.5, Max: time.Minute, Jitter: 20}, LT)},
		{"orders a IN 0 BACKOFF 1000 2 1000 JITTER 0 PAYLOAD v", orders.PutArgs("a", "v",
			Backoff{First: time.Second, Factor: 2, Max: time.Second, Jitter: NoJitter})},
		{"orders a IN 0 BACKOFF 0 0 0 PAYLOAD ", orders.PutArgs("a", "", Backoff{})},
		{"orders a IN 1 GT", orders.MoveArgs("a", In(1), GT)},
		{"orders a b", orders.CancelArgs("a", "b")},
		{"orders IDS 1 ALL AT 1893585600001", withTime(orders.oneTask("ALL"), []When{At(noon.Add(1))})},
	}
	for _, c := range cases {
		if got := joined(c.args); got != c.want {
			t.Errorf("%q: expected %q", got, c.want)
		}
	}
}

func TestMillisecondsRoundAwayFromZero(t *testing.T) {
	for given, want := range map[time.Duration]int64{0: 0, 1: 1, -1: -1, 999999: 1, 1000000: 1, 1000001: 2,
		-1000001: -2, math.MaxInt64: 9223372036855, math.MinInt64: -9223372036855} {
		if got := milliseconds(given); got != want {
			t.Errorf("%d ns are %d ms: expected %d", given, got, want)
		}
	}
}

func TestFailureWords(t *testing.T) {
	cause := errors.New("no network")
	cases := []struct {
		err  error
		want string
	}{
		{cause, "ERROR *errors.errorString: no network"},
		{Retry(time.Minute, cause), "IN 60000 ERROR *errors.errorString: no network"},
		{fmt.Errorf("mail: %w", Retry(-time.Minute, nil)), "IN 0 ERROR "},
		{Dead(cause), "DEAD ERROR *errors.errorString: no network"},
		{fmt.Errorf("mail: %w", Dead(nil)), "DEAD ERROR "},
		{Dead(Retry(time.Minute, cause)), "DEAD ERROR *tickwheel.RetryError: retry after 1m0s: no network"},
		{&panicError{"nil map"}, "ERROR panic: nil map"},
	}
	for _, c := range cases {
		if got := joined(failure(c.err)); got != c.want {
			t.Errorf("%v: %q, expected %q", c.err, got, c.want)
		}
	}
	for err, want := range map[error]string{
		fmt.Errorf("mail: %w", Back(time.Minute)): "BACK IN 60000",
		Back(-1):          "BACK IN 0",
		Dead(Back(1)):     "",
		Retry(1, Back(1)): "",
		cause:             "",
	} {
		if got := joined(backWords(err)); got != want {
			t.Errorf("%v: %q, expected %q", err, got, want)
		}
	}
	if !errors.Is(Retry(0, cause), cause) || !errors.Is(Dead(cause), cause) {
		t.Error("the reason cannot be found in the error")
	}
}

func TestErrorsAreCutBetweenCharacters(t *testing.T) {
	for _, letter := range []string{"a", "\u00e4", "\u20ac", "\U0001f570"} {
		for lead := 0; lead < 4; lead++ {
			text := strings.Repeat("x", lead) + strings.Repeat(letter, errorBytes)
			short := cut(text)
			if !utf8.ValidString(short) || len(short) > errorBytes || len(short) <= errorBytes-len(letter) {
				t.Errorf("%d bytes before %q are cut to %d bytes", lead, letter, len(short))
			}
		}
	}
	if short := cut(strings.Repeat("\x80", 2*errorBytes)); len(short) < errorBytes-utf8.UTFMax {
		t.Errorf("bytes that are no text are cut to %d", len(short))
	}
	if fits := strings.Repeat("a", errorBytes); cut(fits) != fits {
		t.Error("a text that fits is cut")
	}
}

func TestParseURL(t *testing.T) {
	cases := map[string]string{ // The number of options tells whether user, TLS and database were found.
		"redis://":                          "tcp localhost:6379 1",
		"redis://h":                         "tcp h:6379 1",
		"redis://h:7379/5":                  "tcp h:7379 1",
		"redis://:pw@h":                     "tcp h:6379 3",
		"rediss://user:p%40w@[::1]:1/2":     "tcp [::1]:1 4",
		"unix:/run/redis.sock":              "unix /run/redis.sock 1",
		"unix:///run/redis.sock?db=3":       "unix /run/redis.sock 1",
		"unix://user:pw@/run/redis.sock":    "unix /run/redis.sock 3",
		"gopher://h":                        "begins with 'gopher:'",
		"redis://user@h":                    "the user 'user' without a password",
		"redis://h/one":                     "the database 'one'",
		"redis://h/-1":                      "the database '-1'",
		"redis://user:secret word%@h:7379/": "cannot be read",
	}
	for given, want := range cases {
		network, address, options, err := ParseURL(given)
		got := fmt.Sprintf("%s %s %d", network, address, len(options))
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s: %q, expected %q", given, got, want)
		}
		if strings.Contains(got, "secret") {
			t.Errorf("the error has the password: %q", got)
		}
	}
	if _, err := NewPool("nonsense"); err == nil {
		t.Error("a pool was made for nonsense")
	}
}

func TestLastingAdvice(t *testing.T) {
	cases := map[string]string{
		"NOAUTH Authentication required.":                      "password",
		"ERR Protocol error: unauthenticated multibulk length": "password",
		"WRONGPASS invalid username-password pair":             "password",
		"NOPERM this user has no permissions":                  "+tw.take",
		"WRONGTYPE Operation against a key":                    "no queue",
		"ERR unknown command 'TW.TAKE', with args":             "module",
		"ERR LEASE is '0': expected":                           "refuses",
		"MOVED 1 127.0.0.1:1":                                  "tickwheel.Cluster",
		"CROSSSLOT Keys in request":                            "tickwheel.Cluster",
		"DENIED Redis is running in protected mode":            "protected mode",
		"READONLY You can't write":                             "",
		"LOADING Redis is loading":                             "",
		"UNBLOCKED force unblock":                              "",
		"MASTERDOWN Link with MASTER is down":                  "",
		"CLUSTERDOWN The cluster is down":                      "",
		"TRYAGAIN Multiple keys":                               "",
		"OOM command not allowed":                              "",
		"MISCONF Redis is configured":                          "",
		"NOREPLICAS Not enough good replicas to write":         "",
		"ERR max number of clients reached":                    "",
	}
	for text, want := range cases {
		help := lastingAdvice(fmt.Errorf("TW.TAKE: %w", redis.Error(text)))
		if (help == "") != (want == "") || !strings.Contains(help, want) {
			t.Errorf("%s: %q, expected %q", text, help, want)
		}
	}
	if help := lastingAdvice(errors.New("connection refused")); help != "" {
		t.Errorf("a connection that is refused would end the worker: %q", help)
	}
}
