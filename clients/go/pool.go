// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// callTime limits the connecting of NewPool and each reply, and each call of a Worker.
const callTime = 5 * time.Second

// Pool gives connections. A *redis.Pool is a Pool, and so is a *Cluster.
type Pool interface {
	// GetContext gives a connection, which the caller closes.
	GetContext(ctx context.Context) (redis.Conn, error)
}

// NewPool makes a pool for a URL that ParseURL reads, with time limits and with four idle connections. Options
// that are given here come last. To keep other numbers of connections, change the fields of the pool before its
// first use.
func NewPool(rawURL string, options ...redis.DialOption) (*redis.Pool, error) {
	network, address, known, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	all := append(append(timeLimits(callTime), known...), options...)
	dial := func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, network, address, all...)
	}
	return &redis.Pool{DialContext: dial, MaxIdle: 4, IdleTimeout: 5 * time.Minute}, nil
}

// timeLimits are options that stand before those of the user.
func timeLimits(most time.Duration) []redis.DialOption {
	return []redis.DialOption{redis.DialConnectTimeout(most), redis.DialReadTimeout(most),
		redis.DialWriteTimeout(most)}
}

// ParseURL reads the URL of a server, for redis.Dial and for the Options of Sentinel and Cluster:
//
//	redis://user:password@host:port/db     rediss:// is the same over TLS
//	unix:///path/of/the.sock?db=1          also unix://user:password@/path/of/the.sock
//
// The port is 6379 and the database 0 unless given. A user name needs a password.
func ParseURL(rawURL string) (network, address string, options []redis.DialOption, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", "", nil, errors.New("tickwheel: the URL cannot be read; special characters are written as %XX")
	}
	db := strings.TrimPrefix(u.Path, "/")
	network, address = "tcp", net.JoinHostPort(or(u.Hostname(), "localhost"), or(u.Port(), "6379"))
	switch u.Scheme {
	case "redis":
	case "rediss":
		options = append(options, redis.DialUseTLS(true))
	case "unix":
		network, address, db = "unix", u.Path+u.Opaque, u.Query().Get("db")
	default:
		return "", "", nil, fmt.Errorf("tickwheel: the URL begins with '%s:': expected redis:, rediss: or unix:",
			u.Scheme)
	}
	credentials, err := credentialsOf(u.User)
	if err != nil {
		return "", "", nil, err
	}
	database, err := databaseOf(db)
	if err != nil {
		return "", "", nil, err
	}
	return network, address, append(append(options, credentials...), database), nil
}

func credentialsOf(user *url.Userinfo) ([]redis.DialOption, error) {
	password, given := user.Password()
	switch {
	case given:
		return []redis.DialOption{redis.DialUsername(user.Username()), redis.DialPassword(password)}, nil
	case user.Username() != "":
		return nil, fmt.Errorf("tickwheel: the URL has the user '%s' without a password: expected user:password@",
			user.Username())
	}
	return nil, nil
}

func databaseOf(text string) (redis.DialOption, error) {
	number, err := strconv.Atoi(or(text, "0"))
	if err != nil || number < 0 {
		return redis.DialOption{}, fmt.Errorf("tickwheel: the URL has the database '%s': expected 0 or more", text)
	}
	return redis.DialDatabase(number), nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// call sends one command about a key. In a cluster it goes to the node that has the key.
func call(ctx context.Context, pool Pool, key, command string, args redis.Args) (interface{}, error) {
	if cluster, ok := pool.(*Cluster); ok {
		return cluster.call(ctx, key, command, args)
	}
	conn, err := pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	return callAndClose(ctx, conn, command, args)
}

// callAndClose sends one command, and gives the connection back. A connection to a server that is no primary
// any more is closed for good, so that the next one is dialled anew, and finds the new primary.
func callAndClose(ctx context.Context, conn redis.Conn, command string, args redis.Args) (interface{}, error) {
	defer conn.Close()
	reply, err := callOn(ctx, conn, command, args)
	if isDemoted(err) {
		hangUp(conn)
	}
	return reply, err
}

// callOn sends one command, unless the context has ended: a pool with an idle connection does not look. The
// deadline of the context limits the wait for the reply.
func callOn(ctx context.Context, conn redis.Conn, command string, args redis.Args) (interface{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	deadline, limited := ctx.Deadline()
	if !limited {
		return conn.Do(command, args...)
	}
	left := time.Until(deadline)
	if left <= 0 {
		return nil, context.DeadlineExceeded
	}
	return redis.DoWithTimeout(conn, left, command, args...)
}

// hangUp ends a connection, so that its pool does not keep it. A pool keeps connections that work, and has no
// call to drop one. After QUIT the server closes the connection, and the connection notes that when it reads.
func hangUp(conn redis.Conn) {
	if _, err := redis.DoWithTimeout(conn, callTime, "QUIT"); err == nil {
		_, _ = redis.ReceiveWithTimeout(conn, callTime)
	}
}
