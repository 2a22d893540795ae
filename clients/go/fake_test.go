// SPDX-License-Identifier: MIT

package tickwheel

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// fake is a server that replies with the text that a function makes of the words of each command. It stands for
// nodes and sentinels in states that a real one is seldom in.
type fake struct {
	listener net.Listener
	mu       sync.Mutex
	heard    []string
}

func newFake(t *testing.T, reply func(words string) string) *fake {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{listener: listener}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go f.serve(conn, reply)
		}
	}()
	return f
}

func (f *fake) address() string { return f.listener.Addr().String() }

func (f *fake) port() int { return f.listener.Addr().(*net.TCPAddr).Port }

// commands are the commands so far, each with its words joined by spaces.
func (f *fake) commands() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.heard...)
}

func (f *fake) serve(conn net.Conn, reply func(string) string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		words, err := readCommand(in)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.heard = append(f.heard, words)
		f.mu.Unlock()
		text := reply(words)
		if text == "" { // The function wants the connection to end.
			return
		}
		if _, err := io.WriteString(conn, text+"\r\n"); err != nil || words == "QUIT" {
			return
		}
	}
}

// readCommand reads an array of bulk strings.
func readCommand(in *bufio.Reader) (string, error) {
	var count, length int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &count); err != nil {
		return "", err
	}
	words := make([]string, count)
	for i := range words {
		if _, err := fmt.Fscanf(in, "$%d\r\n", &length); err != nil {
			return "", err
		}
		word := make([]byte, length+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return "", err
		}
		words[i] = string(word[:length])
	}
	return strings.Join(words, " "), nil
}

// array makes the text of an array of bulk strings.
func array(words ...string) string {
	text := fmt.Sprintf("*%d", len(words))
	for _, word := range words {
		text += fmt.Sprintf("\r\n$%d\r\n%s", len(word), word)
	}
	return text
}
