// SPDX-License-Identifier: MIT

package tickwheel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	slotCount    = 16384
	redirections = 5 // A command that was sent on more often than this fails: the nodes disagree.
)

// Cluster gives the connections of a Redis Cluster to queues and workers: each command goes to the node that
// has its key. It asks the nodes by CLUSTER SLOTS, and follows MOVED and ASK. Set the fields before the first
// use.
type Cluster struct {
	Addrs   []string           // host:port of some nodes. The others are found.
	Options []redis.DialOption // For the connections to each node: user, password, TLS, time limits.
	MaxIdle int                // Idle connections that are kept to each node. The default is 4.

	mu    sync.Mutex
	known bool // Whether owner is worth something.
	owner [slotCount]string
	pools map[string]*redis.Pool
}

// Slot is the slot of a key: of the text in its first braces if it has any, else of the whole key.
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	return int(crc16(key)) % slotCount
}

// crc16 is CRC-16/XMODEM, which the protocol of the cluster asks for.
func crc16(text string) uint16 {
	var sum uint16
	for i := 0; i < len(text); i++ {
		sum ^= uint16(text[i]) << 8
		for bit := 0; bit < 8; bit++ {
			carry := sum & 0x8000
			if sum <<= 1; carry != 0 {
				sum ^= 0x1021
			}
		}
	}
	return sum
}

// GetContext gives a connection to some node, which makes a Cluster a Pool. GetKey is the one for commands with
// keys.
func (c *Cluster) GetContext(ctx context.Context) (redis.Conn, error) { return c.GetKey(ctx, "") }

// GetKey gives a connection to the node that has the key, for a transaction of your own. The caller closes it.
// Such a connection does not follow MOVED and ASK: if EXEC or a command fails with one of these, call Learn
// with the error, and begin anew with another connection.
func (c *Cluster) GetKey(ctx context.Context, key string) (redis.Conn, error) {
	conn, _, err := c.getKey(ctx, key)
	return conn, err
}

// getKey returns the address of the connection too.
func (c *Cluster) getKey(ctx context.Context, key string) (redis.Conn, string, error) {
	address, err := c.node(ctx, Slot(key))
	if err != nil {
		return nil, "", err
	}
	conn, err := c.poolOf(address).GetContext(ctx)
	if err != nil {
		c.forget()
		return nil, "", err
	}
	return conn, address, nil
}

// Learn looks at an error of a connection of GetKey. It returns true if the error says that the slot of the key
// is elsewhere; the next GetKey then gives a connection to its new node. After MOVED that is so at once. After
// any error that is not a server's, the nodes are asked again.
func (c *Cluster) Learn(err error) bool {
	redirection := parseRedirection(err)
	switch {
	case redirection == nil:
		if err != nil && errorCode(err) == "" {
			c.forget()
		}
		return false
	case !redirection.ask:
		c.setOwner(redirection.slot, redirection.address)
	}
	return true
}

// Close closes the idle connections.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pool := range c.pools {
		pool.Close()
	}
	c.pools = nil
	return nil
}

// call sends a command to the node of the key, and on to where MOVED and ASK name.
func (c *Cluster) call(ctx context.Context, key, command string, args redis.Args) (interface{}, error) {
	address, err := c.node(ctx, Slot(key))
	for asking, left := false, redirections; err == nil; left-- {
		var reply interface{}
		reply, err = c.callAt(ctx, address, asking, command, args)
		redirection := parseRedirection(err)
		if redirection == nil || left == 0 {
			c.Learn(err)
			return reply, err
		}
		c.Learn(err)
		address, asking, err = redirection.address, redirection.ask, nil
	}
	return nil, err
}

func (c *Cluster) callAt(ctx context.Context, address string, asking bool, command string, args redis.Args) (
	interface{}, error) {
	conn, err := c.poolOf(address).GetContext(ctx)
	if err != nil {
		return nil, err
	}
	if asking {
		if err := conn.Send("ASKING"); err != nil {
			conn.Close()
			return nil, err
		}
	}
	reply, err := callAndClose(ctx, conn, command, args)
	return reply, completed(err, address)
}

// redirection is the meaning of MOVED and ASK.
type redirection struct {
	ask     bool
	slot    int
	address string
}

// completed adds the host that was asked to a redirection without a host: the node means itself then.
func completed(err error, asked string) error {
	words := strings.Fields(errorText(err))
	if len(words) == 3 && (words[0] == "MOVED" || words[0] == "ASK") && strings.HasPrefix(words[2], ":") {
		host, _, _ := net.SplitHostPort(asked)
		return redis.Error(words[0] + " " + words[1] + " " + net.JoinHostPort(host, words[2][1:]))
	}
	return err
}

// parseRedirection reads "MOVED slot host:port" and "ASK slot host:port"; nil for any other error.
func parseRedirection(err error) *redirection {
	words := strings.Fields(errorText(err))
	if len(words) != 3 || (words[0] != "MOVED" && words[0] != "ASK") {
		return nil
	}
	slot, err := strconv.Atoi(words[1])
	if err != nil || slot < 0 || slot >= slotCount {
		return nil
	}
	colon := strings.LastIndexByte(words[2], ':') // The host may be an IPv6 address without brackets.
	if colon < 0 {
		return nil
	}
	host := strings.Trim(words[2][:colon], "[]")
	return &redirection{words[0] == "ASK", slot, net.JoinHostPort(host, words[2][colon+1:])}
}

func errorText(err error) string {
	var refusal redis.Error
	if errors.As(err, &refusal) {
		return string(refusal)
	}
	return ""
}

// Nodes and slots

// node is the address of the primary of a slot.
func (c *Cluster) node(ctx context.Context, slot int) (string, error) {
	c.mu.Lock()
	known, address := c.known, c.owner[slot]
	c.mu.Unlock()
	if known && address != "" {
		return address, nil
	}
	if err := c.ask(ctx); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owner[slot] == "" {
		return "", redis.Error(fmt.Sprintf("CLUSTERDOWN no node has the slot %d", slot))
	}
	return c.owner[slot], nil
}

// ask asks one node after the other for the slots, until one replies.
func (c *Cluster) ask(ctx context.Context) error {
	err := errors.New("tickwheel: the cluster has no node: expected host:port in Addrs")
	for _, address := range c.addresses() {
		var slots []interface{}
		slots, err = redis.Values(c.callAt(ctx, address, false, "CLUSTER", redis.Args{"SLOTS"}))
		if err == nil {
			if err = c.learnSlots(slots, address); err == nil {
				return nil
			}
		}
	}
	return err
}

// addresses has the given nodes and the nodes that were found, each once.
func (c *Cluster) addresses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, seen := append([]string(nil), c.Addrs...), make(map[string]bool)
	for _, address := range all {
		seen[address] = true
	}
	for address := range c.pools {
		if !seen[address] {
			all = append(all, address)
		}
	}
	return all
}

// learnSlots reads [[first, last, [host, port, ...], replica...], ...].
func (c *Cluster) learnSlots(slots []interface{}, asked string) error {
	var read reader
	var owner [slotCount]string
	for _, one := range slots {
		part := read.fields(one, nil, 3)
		first, last := read.int(part[0]), read.int(part[1])
		address := nodeAddress(&read, part[2], asked)
		if read.err != nil || first < 0 || last >= slotCount {
			break
		}
		for slot := first; slot <= last; slot++ {
			owner[slot] = address
		}
	}
	if read.err != nil {
		return read.err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.owner = true, owner
	return nil
}

// nodeAddress reads [host, port, ...]. A node without a host is reached where the reply came from.
func nodeAddress(read *reader, node interface{}, asked string) string {
	f := read.fields(node, nil, 2)
	host, err := redis.String(f[0], nil)
	if err == redis.ErrNil || (err == nil && host == "") {
		host, _, err = net.SplitHostPort(asked)
	}
	read.note(err)
	return net.JoinHostPort(host, strconv.FormatInt(read.int(f[1]), 10))
}

func (c *Cluster) setOwner(slot int, address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owner[slot] = address
}

// forget lets the nodes be asked again before the next command.
func (c *Cluster) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = false
}

func (c *Cluster) poolOf(address string) *redis.Pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pool := c.pools[address]; pool != nil {
		return pool
	}
	idle := c.MaxIdle
	if idle == 0 {
		idle = 4
	}
	dial := func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", address, append(timeLimits(callTime), c.Options...)...)
	}
	pool := &redis.Pool{DialContext: dial, MaxIdle: idle, IdleTimeout: 5 * time.Minute}
	if c.pools == nil {
		c.pools = make(map[string]*redis.Pool)
	}
	c.pools[address] = pool
	return pool
}
