// SPDX-License-Identifier: MIT

package tickwheel

import (
	"errors"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// passing has the errors of a server that go away by themselves, or after a failover.
var passing = map[string]bool{"READONLY": true, "LOADING": true, "UNBLOCKED": true, "MASTERDOWN": true,
	"CLUSTERDOWN": true, "TRYAGAIN": true, "OOM": true, "MISCONF": true, "NOREPLICAS": true, "BUSY": true}

// advice says what to do about errors that stay.
var advice = map[string]string{
	"NOAUTH":    "give user and password in the URL or in the options of the pool",
	"WRONGPASS": "give the right user and password in the URL or in the options of the pool",
	"NOPERM":    "a worker's user needs ~queue +tw.take +tw.ack +tw.nack +tw.touch",
	"WRONGTYPE": "a key with the name of a queue is no queue: remove it, or name another queue",
	"CROSSSLOT": "the server is a node of a cluster: use a tickwheel.Cluster as the pool",
	"MOVED":     "the server is a node of a cluster: use a tickwheel.Cluster as the pool",
	"ASK":       "the server is a node of a cluster: use a tickwheel.Cluster as the pool",
	"DENIED":    "the server is in its protected mode: give it a password, or bind it to the loopback address",
}

const (
	noModule  = "the server has not loaded the module tickwheel.so: load it by loadmodule or MODULE LOAD"
	otherwise = "the server refuses the call, and would refuse it again"
)

// errorCode is the first word of a server's error; empty if the error is not the server's.
func errorCode(err error) string {
	var refusal redis.Error
	if !errors.As(err, &refusal) {
		return ""
	}
	return strings.SplitN(string(refusal), " ", 2)[0]
}

// lastingAdvice says what to do about an error; empty for an error that goes away.
func lastingAdvice(err error) string {
	code := errorCode(err)
	switch {
	case code == "" || passing[code]:
		return ""
	case advice[code] != "":
		return advice[code]
	case strings.Contains(err.Error(), "unauthenticated"): // A server says so if a command has many words.
		return advice["NOAUTH"]
	case strings.Contains(err.Error(), "unknown command"):
		return noModule
	case strings.Contains(err.Error(), "max number of clients"):
		return ""
	}
	return otherwise
}

// isDemoted says that a server is no primary any more, or was not reached as one.
func isDemoted(err error) bool {
	switch errorCode(err) {
	case "READONLY", "UNBLOCKED", "MASTERDOWN":
		return true
	}
	return false
}
