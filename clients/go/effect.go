// SPDX-License-Identifier: MIT

package tickwheel

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// The errors of AckThen.
var (
	// ErrNotYours says that the task is not this worker's any more: it was cancelled, or another worker may have
	// it. There was no effect.
	ErrNotYours = errors.New("tickwheel: the task is not yours any more")

	// ErrReplyLost says that a reply was lost, and that the task is not this worker's any more. So the script has
	// run once, or not at all. It is an ErrNotYours too.
	ErrReplyLost = fmt.Errorf("a reply was lost, so the script has run once or not at all: %w", ErrNotYours)
)

// EffectError says that the script of AckThen has failed. The job is done all the same, since its acknowledgement
// came first, and so are the changes that the script made before.
type EffectError struct{ Text string }

func (e *EffectError) Error() string { return "tickwheel: the script of AckThen has failed: " + e.Text }

// The handler's script stands between these two, with its own KEYS and ARGV, and keeps the numbers of its lines. If
// it does not compile, nothing is acknowledged. TW.ACK comes first: it is refused where nothing may be written, and
// after it the server lets the script write whatever happens.
const (
	scriptHead = "local effect = function(KEYS, ARGV) "
	scriptTail = `
end
local keys, args = {}, {}
for i = 2, #KEYS do keys[i - 1] = KEYS[i] end
for i = 3, #ARGV do args[i - 2] = ARGV[i] end
local done = redis.pcall('TW.ACK', KEYS[1], ARGV[1], ARGV[2])
if type(done) == 'table' then return done end
if done ~= 1 then return {0} end
local went, reply = pcall(effect, keys, args)
local failed = type(reply) == 'table' and reply.err
if not went or failed then return {2, failed or tostring(reply)} end
return {1, reply}
`
)

// AckThen acknowledges the job and runs a script of Redis, in one step, and returns the reply of the script. The job
// is done then, whatever the handler does after that. It is repeated until the server has answered.
//
// The script has its own KEYS and ARGV. In a Cluster all keys are in the slot of the queue. The error is
//
//   - ErrNotYours if the task is not this worker's any more, and nothing has happened,
//   - ErrReplyLost if a lost reply leaves that open,
//   - an *EffectError if the script fails, and the job is done all the same.
//
// After any other error nothing has happened, for example if the script does not compile.
func (j *Job) AckThen(script string, keys []string, args ...interface{}) (interface{}, error) {
	words, err := j.scriptArgs(script, keys, args)
	j.ending.Lock()
	defer j.ending.Unlock()
	switch {
	case err != nil:
		return nil, err
	case j.acking.Load():
		return nil, fmt.Errorf("tickwheel: %q was acknowledged before: expected one AckThen", j.ID)
	case j.NotYours() || !j.claim():
		return nil, ErrNotYours
	}
	j.acking.Store(true)
	reply, unsure, err := j.run.insist(j.Queue, "EVAL", words, j.run.staysForScript)
	if err != nil {
		return nil, j.release(err)
	}
	return j.effect(reply, unsure)
}

// scriptArgs returns the arguments of EVAL.
func (j *Job) scriptArgs(script string, keys []string, args []interface{}) (redis.Args, error) {
	if j.run == nil {
		return nil, errors.New("tickwheel: the job belongs to no worker: expected the job of a handler")
	}
	if strings.HasPrefix(script, "#!") {
		line, _, _ := strings.Cut(script, "\n")
		return nil, fmt.Errorf("tickwheel: the script begins with %q: expected Lua without such a line", line)
	}
	if _, ok := j.run.Pool.(*Cluster); ok {
		for _, key := range keys {
			if Slot(key) != Slot(j.Queue) {
				return nil, fmt.Errorf("tickwheel: the key %q is in another slot than the queue %q: "+
					"expected the same text in braces", key, j.Queue)
			}
		}
	}
	words := redis.Args{scriptHead + script + scriptTail, 1 + len(keys), j.Queue}
	return words.AddFlat(keys).Add(j.ID, j.Token).Add(args...), nil
}

// release lets the worker tell the result, as the script was not run. After an error that passes the worker has given
// up before there was a reply.
func (j *Job) release(err error) error {
	if !j.run.lasts(err) {
		j.notYours.Store(true)
		err = fmt.Errorf("%w (%v)", ErrReplyLost, err)
	}
	j.acking.Store(false)
	j.claimed.Store(false)
	return err
}

// effect reads the reply of the script.
func (j *Job) effect(reply interface{}, unsure bool) (interface{}, error) {
	var read reader
	parts := read.fields(reply, nil, 1)
	state := read.int(parts[0])
	if state == 0 && read.err == nil && !unsure {
		j.notYours.Store(true)
		j.acking.Store(false)
		j.claimed.Store(false)
		return nil, ErrNotYours
	}
	j.done.Store(true)
	j.run.counts.done.Add(1)
	switch {
	case read.err != nil:
		return nil, read.err
	case state == 0:
		return nil, ErrReplyLost
	case state == 2:
		return nil, &EffectError{read.text(parts[1])}
	case len(parts) < 2:
		return nil, nil
	}
	return parts[1], nil
}
