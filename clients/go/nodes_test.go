// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

var background = context.Background()

func TestSlot(t *testing.T) {
	if sum := crc16("123456789"); sum != 0x31c3 {
		t.Errorf("the check value of CRC-16/XMODEM is %#x", sum)
	}
	for key, want := range map[string]int{"": 0, "foo": 12182, "{foo}:jobs": 12182, "a{foo}b{bar}": 12182,
		"foo{}": Slot("foo{}"), "{foo": Slot("{foo"), "123456789": 12739} {
		if got := Slot(key); got != want {
			t.Errorf("%q has the slot %d: expected %d", key, got, want)
		}
	}
	if Slot("a{}{foo}") == Slot("foo") || Slot("foo{}") == Slot("") {
		t.Error("empty braces are no tag, and nothing behind them is")
	}
}

func TestGroups(t *testing.T) {
	keys := []string{"{a}1", "b", "{a}2"}
	if got := groups(&redis.Pool{}, keys); !reflect.DeepEqual(got, [][]string{keys}) {
		t.Errorf("one server: %v", got)
	}
	if got := groups(&Cluster{}, keys); !reflect.DeepEqual(got, [][]string{{"{a}1", "{a}2"}, {"b"}}) {
		t.Errorf("a cluster: %v", got)
	}
}

func TestRedirections(t *testing.T) {
	cases := map[string]*redirection{
		"MOVED 7 10.0.0.1:6379":    {false, 7, "10.0.0.1:6379"},
		"ASK 16383 host:1":         {true, 16383, "host:1"},
		"MOVED 7 ::1:6379":         {false, 7, "[::1]:6379"},
		"MOVED 16384 10.0.0.1:1":   nil,
		"MOVED 7 nonsense":         nil,
		"ERR MOVED 7 10.0.0.1:637": nil,
	}
	for text, want := range cases {
		if got := parseRedirection(redis.Error(text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, expected %+v", text, got, want)
		}
	}
	if parseRedirection(errors.New("MOVED 7 10.0.0.1:1")) != nil || parseRedirection(nil) != nil {
		t.Error("an error that is not a server's redirects")
	}
	if err := completed(redis.Error("MOVED 7 :2"), "10.0.0.1:1"); err.Error() != "MOVED 7 10.0.0.1:2" {
		t.Errorf("a redirection without a host: %v", err)
	}
}

// slots makes the reply of CLUSTER SLOTS: all slots are on one node.
func slots(host string, port int) string {
	return fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%s\r\n:%d", len(host), host, port)
}

func TestClusterFollowsMovedAndAsk(t *testing.T) {
	last := newFake(t, func(words string) string {
		if words == "ASKING" {
			return "+OK"
		}
		return ":5"
	})
	middle := newFake(t, func(string) string { return fmt.Sprintf("-ASK %d %s", Slot("s"), last.address()) })
	var first *fake
	first = newFake(t, func(words string) string {
		if words == "CLUSTER SLOTS" {
			return slots("", first.port())
		}
		return fmt.Sprintf("-MOVED %d :%d", Slot("s"), middle.port())
	})
	cluster := &Cluster{Addrs: []string{"127.0.0.1:1", first.address()}} // Nobody listens on port 1.
	defer cluster.Close()
	queue := NewQueue(cluster, "s")
	for i := 0; i < 2; i++ {
		if count, err := queue.Count(background); count != 5 || err != nil {
			t.Fatalf("%d, %v", count, err)
		}
	}
	for name, c := range map[string][2][]string{
		"first":  {first.commands(), {"CLUSTER SLOTS", "TW.LEN s"}},
		"middle": {middle.commands(), {"TW.LEN s", "TW.LEN s"}},
		"last":   {last.commands(), {"ASKING", "TW.LEN s", "ASKING", "TW.LEN s"}},
	} {
		if !reflect.DeepEqual(c[0], c[1]) {
			t.Errorf("the %s node heard %v: expected %v", name, c[0], c[1])
		}
	}
}

func TestClusterGivesUp(t *testing.T) {
	var round *fake
	round = newFake(t, func(words string) string {
		if words == "CLUSTER SLOTS" {
			return slots("127.0.0.1", round.port())
		}
		return fmt.Sprintf("-MOVED %d %s", Slot("s"), round.address())
	})
	cluster := &Cluster{Addrs: []string{round.address()}}
	_, err := NewQueue(cluster, "s").Count(background)
	if errorCode(err) != "MOVED" || len(round.commands()) != 2+redirections {
		t.Errorf("%v after %d commands", err, len(round.commands()))
	}
	hole := newFake(t, func(string) string { return "*0" })
	empty := NewQueue(&Cluster{Addrs: []string{hole.address()}}, "s")
	if _, err := empty.Count(background); errorCode(err) != "CLUSTERDOWN" {
		t.Errorf("without slots: %v", err)
	}
	if _, err := (&Cluster{}).GetContext(background); err == nil || !strings.Contains(err.Error(), "Addrs") {
		t.Errorf("without nodes: %v", err)
	}
}

func TestClusterAsksAgainAfterALoss(t *testing.T) {
	healthy := newFake(t, func(string) string { return ":5" })
	var map1 *fake
	dying := newFake(t, func(string) string { return "" })
	map1 = newFake(t, func(string) string {
		if len(map1.commands()) == 1 {
			return slots("127.0.0.1", dying.port())
		}
		return slots("127.0.0.1", healthy.port())
	})
	cluster := &Cluster{Addrs: []string{map1.address()}}
	queue := NewQueue(cluster, "s")
	if _, err := queue.Count(background); err == nil {
		t.Error("the node that ends connections has replied")
	}
	if count, err := queue.Count(background); count != 5 || err != nil {
		t.Errorf("%d, %v", count, err)
	}
}

func primary(string) string { return array("master", "0") }

func TestSentinelFindsThePrimary(t *testing.T) {
	server, replica := newFake(t, primary), newFake(t, func(string) string { return array("slave", "h") })
	named := func(f *fake) func(string) string {
		return func(string) string { return array("127.0.0.1", fmt.Sprint(f.port())) }
	}
	stale, right := newFake(t, named(replica)), newFake(t, named(server))
	ignorant := newFake(t, func(string) string { return "*-1" })
	all := []string{"127.0.0.1:1", ignorant.address(), stale.address(), right.address()}
	s := &Sentinel{Addrs: all, Service: "shop"}
	for i := 0; i < 2; i++ {
		conn, err := s.DialContext(background)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	want := []string{"SENTINEL GET-MASTER-ADDR-BY-NAME shop"}
	if got := ignorant.commands(); !reflect.DeepEqual(got, want) {
		t.Errorf("the sentinel that replied last is not asked first: %v", got)
	}
	for address, text := range map[string]string{ignorant.address(): "does not know", stale.address(): "'slave'",
		"127.0.0.1:1": "refused"} {
		_, err := (&Sentinel{Addrs: []string{address}, Service: "shop"}).DialContext(background)
		if err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "'shop'") {
			t.Errorf("%v: expected %q", err, text)
		}
	}
	if _, err := (&Sentinel{}).DialContext(background); err == nil || !strings.Contains(err.Error(), "Addrs") {
		t.Errorf("without sentinels: %v", err)
	}
}

func TestPrimaryIsTestedAfterASecond(t *testing.T) {
	replica := newFake(t, func(string) string { return array("slave", "h") })
	conn, err := redis.Dial("tcp", replica.address())
	if err != nil {
		t.Fatal(err)
	}
	if TestPrimary(conn, time.Now().Add(time.Hour)) != nil ||
		TestPrimary(conn, time.Now().Add(-time.Minute)) == nil {
		t.Error("a connection is tested after a second, and not before")
	}
}

// TestADemotedServerIsLeft: the pool drops the connection, so that the next one is dialled anew.
func TestADemotedServerIsLeft(t *testing.T) {
	var node *fake
	node = newFake(t, func(words string) string {
		switch {
		case words == "QUIT":
			return "+OK"
		case len(node.commands()) == 1:
			return "-READONLY You can't write against a read only replica."
		}
		return ":5"
	})
	dials := 0
	pool := &redis.Pool{MaxIdle: 2, Dial: func() (redis.Conn, error) {
		dials++
		return redis.Dial("tcp", node.address(), redis.DialReadTimeout(time.Minute))
	}}
	queue := NewQueue(pool, "s")
	if _, err := queue.Count(background); errorCode(err) != "READONLY" {
		t.Errorf("%v", err)
	}
	if _, err := queue.Count(background); err != nil || dials != 2 {
		t.Errorf("%v after %d dials", err, dials)
	}
}

func TestTheContextLimitsACall(t *testing.T) {
	silent := newFake(t, func(string) string { select {} })
	pool, err := NewPool("redis://" + silent.address())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	if _, err := NewQueue(pool, "s").Count(ctx); err == nil {
		t.Error("a server that does not reply has replied")
	}
	if _, err := NewQueue(pool, "s").Count(ctx); err == nil {
		t.Error("a context that has ended is no limit")
	}
}
