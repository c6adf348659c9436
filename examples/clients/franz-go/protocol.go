// The protocol of ackproof's client programs: calls on standard input, answers on standard output. A library is put
// behind it by hello, newLibrary and nameOf: see the file beside this one.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

type partition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

type offset struct {
	partition
	Offset *int64 `json:"offset"`
}

type record struct {
	partition
	Offset  int64             `json:"offset"`
	Key     []byte            `json:"key"`
	Value   []byte            `json:"value"`
	Headers map[string][]byte `json:"headers,omitempty"`
}

// call is a line of standard input. Go reads base64 into bytes by itself.
type call struct {
	partition
	Method     string            `json:"method"`
	Client     int               `json:"client"`
	Call       int64             `json:"call"`
	Properties map[string]string `json:"properties"`
	Key        []byte            `json:"key"`
	Value      []byte            `json:"value"`
	Headers    map[string][]byte `json:"headers"`
	Topics     []string          `json:"topics"`
	Partitions []partition       `json:"partitions"`
	Offsets    []offset          `json:"offsets"`
	TimeoutMs  int64             `json:"timeout_ms"`
}

type answer map[string]any

// library is one producer or consumer: its calls are done by one goroutine, in their order. Without a result a call is
// answered elsewhere. wakeUp comes from another goroutine.
type library interface {
	perform(one *call) (answer, error)
	wakeUp()
}

// network has the connections of a client, so that they can be cut.
type network struct {
	mutex sync.Mutex
	open  []net.Conn
	isCut bool
}

func (n *network) dial(limit context.Context, kind, host string) (net.Conn, error) {
	connection, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(limit, kind, host)
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if err == nil && n.isCut {
		connection.Close()
		return nil, errors.New("the client has ended")
	}
	if err == nil {
		n.open = append(n.open, connection)
	}
	return connection, err
}

// Dial is dial for libraries that give no context.
func (n *network) Dial(kind, host string) (net.Conn, error) {
	return n.dial(context.Background(), kind, host)
}

func (n *network) cut() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.isCut = true
	for _, each := range n.open {
		each.Close()
	}
}

// answers writes each call's one answer, from any goroutine; what the library says after that is dropped.
type answers struct {
	mutex sync.Mutex
	out   *bufio.Writer
	open  map[int64]int
}

func (a *answers) expect(one *call) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.open[one.Call] = one.Client
}

func (a *answers) ok(one *call, result answer) {
	result["end"] = "ok"
	a.answer(one.Call, result)
}

// classed is an error with its class; without one it is "failed".
type classed struct {
	class string
	error
}

// fail says how a call failed: a refused record was never taken by the library, a transaction that must be aborted is
// not committed.
func (a *answers) fail(one *call, err error) {
	class, end := "failed", "info"
	var told classed
	if errors.As(err, &told) {
		class = told.class
	}
	if class == "refused" || class == "abortable" {
		end = "fail"
	}
	a.answer(one.Call, answer{"end": end, "class": class, "error": nameOf(err), "words": err.Error()})
}

// rest answers what the library has left open of a client, before the call that ends it.
func (a *answers) rest(last *call) {
	a.mutex.Lock()
	left := []int64{}
	for number, client := range a.open {
		if client == last.Client && number != last.Call {
			left = append(left, number)
		}
	}
	a.mutex.Unlock()
	for _, number := range left {
		a.answer(number, answer{"end": "info", "class": "failed", "error": "Closed"})
	}
}

func (a *answers) answer(number int64, result answer) {
	a.mutex.Lock()
	_, open := a.open[number]
	delete(a.open, number)
	a.mutex.Unlock()
	if open {
		result["call"] = number
		a.say(result)
	}
}

func (a *answers) say(message answer) {
	line, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.out.Write(append(line, '\n'))
	a.out.Flush()
}

func number(properties map[string]string, name string) int {
	value, _ := strconv.Atoi(properties[name])
	return value
}

func milliseconds(properties map[string]string, name string) time.Duration {
	return time.Duration(number(properties, name)) * time.Millisecond
}

// versionOf is that of a module, as this program was built with it.
func versionOf(path string) string {
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, module := range built.Deps {
			if module.Path == path {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "unknown"
}

// work does the calls of a library until it ends.
func work(here library, calls chan *call, answering *answers) {
	for one := range calls {
		result, err := here.perform(one)
		if err != nil {
			answering.fail(one, err)
		} else if result != nil {
			answering.ok(one, result)
		}
		if one.Method == "close" || one.Method == "crash" {
			return
		}
	}
}

type running struct {
	library
	calls chan *call
}

func main() {
	answering := &answers{out: bufio.NewWriter(os.Stdout), open: map[int64]int{}}
	os.Stdout = os.Stderr // it is for answers: whatever a library prints goes to standard error
	answering.say(hello())
	clients := map[int]*running{}
	calls := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<16))
	for {
		one := &call{}
		if calls.Decode(one) != nil {
			return
		}
		here := clients[one.Client]
		if one.Method == "wake_up" {
			if here != nil {
				here.wakeUp()
			}
			continue
		}
		if here == nil {
			here = &running{newLibrary(answering), make(chan *call, 1<<16)}
			clients[one.Client] = here
			go work(here.library, here.calls, answering)
		}
		answering.expect(one)
		here.calls <- one
		if one.Method == "close" || one.Method == "crash" {
			delete(clients, one.Client)
		}
	}
}
