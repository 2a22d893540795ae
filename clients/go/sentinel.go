// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// sentinelTime limits each step with a sentinel: a sentinel that hangs must not keep the others from being
// asked.
const sentinelTime = time.Second

// Sentinel finds the primary of a service by its sentinels. Its DialContext is for a redis.Pool:
//
//	sentinel := &tickwheel.Sentinel{Addrs: []string{"a:26379", "b:26379", "c:26379"}, Service: "shop"}
//	pool := &redis.Pool{DialContext: sentinel.DialContext, TestOnBorrow: tickwheel.TestPrimary, MaxIdle: 4}
//
// Set the fields before the first use.
type Sentinel struct {
	Addrs   []string // host:port of each sentinel.
	Service string   // The name under which the sentinels watch the primary.

	// Options for the connections to the primary: user, password, database, TLS, time limits.
	Options []redis.DialOption
	// SentinelOptions for the connections to the sentinels, which have passwords of their own.
	SentinelOptions []redis.DialOption

	mu    sync.Mutex
	first int // The sentinel that replied last is asked first.
}

// DialContext asks one sentinel after the other for the primary, connects to it, and checks by ROLE that it is
// one. The error tells why the last sentinel could not help.
func (s *Sentinel) DialContext(ctx context.Context) (redis.Conn, error) {
	err := errors.New("there are no sentinels: expected host:port in Addrs")
	s.mu.Lock()
	first := s.first
	s.mu.Unlock()
	for i := range s.Addrs {
		at := (first + i) % len(s.Addrs)
		var conn redis.Conn
		if conn, err = s.dialBy(ctx, s.Addrs[at]); err == nil {
			s.mu.Lock()
			s.first = at
			s.mu.Unlock()
			return conn, nil
		}
		if errorCode(err) == "WRONGPASS" || errorCode(err) == "NOAUTH" {
			break // The next sentinel would name the same server.
		}
	}
	return nil, fmt.Errorf("tickwheel: no primary of the service '%s' was found: %w", s.Service, err)
}

// dialBy connects to the primary that one sentinel names.
func (s *Sentinel) dialBy(ctx context.Context, sentinel string) (redis.Conn, error) {
	address, err := s.ask(ctx, sentinel)
	if err != nil {
		return nil, err
	}
	conn, err := redis.DialContext(ctx, "tcp", address, append(timeLimits(callTime), s.Options...)...)
	if err != nil {
		return nil, err
	}
	if err := TestPrimary(conn, time.Time{}); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s, which the sentinel %s names: %w", address, sentinel, err)
	}
	return conn, nil
}

// ask returns the address of the primary that a sentinel knows.
func (s *Sentinel) ask(ctx context.Context, sentinel string) (string, error) {
	options := append(timeLimits(sentinelTime), s.SentinelOptions...)
	conn, err := redis.DialContext(ctx, "tcp", sentinel, options...)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	found, err := redis.Strings(conn.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Service))
	if err == redis.ErrNil {
		return "", fmt.Errorf("the sentinel %s does not know the service", sentinel)
	}
	if err != nil {
		return "", fmt.Errorf("the sentinel %s: %w", sentinel, err)
	}
	if len(found) != 2 {
		return "", fmt.Errorf("the sentinel %s replied with %d words: expected host and port", sentinel, len(found))
	}
	return net.JoinHostPort(found[0], found[1]), nil
}

// TestPrimary fails unless the server of a connection is a primary. As TestOnBorrow of a redis.Pool it looks at
// each connection that was idle for more than a second; the user needs the right +role.
func TestPrimary(conn redis.Conn, idleSince time.Time) error {
	if time.Since(idleSince) < time.Second {
		return nil
	}
	role, err := redis.Values(conn.Do("ROLE"))
	if err != nil {
		return err
	}
	if len(role) == 0 {
		return errors.New("tickwheel: the reply of ROLE is empty")
	}
	if name, err := redis.String(role[0], nil); err != nil || name != "master" {
		return fmt.Errorf("tickwheel: the server is no primary: its role is '%s'", name)
	}
	return nil
}
