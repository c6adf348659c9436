// sarama as a client program of ackproof: `go build -o client . && ackproof client check ./client`.
package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const recordsMax = 500

// client is one producer or consumer.
type client struct {
	answers    *answers
	properties map[string]string
	network    *network
	library    sarama.Client
	producer   sarama.AsyncProducer
	reported   sync.WaitGroup
	consumer   sarama.Consumer
	records    chan record
	failed     chan error
	woken      chan struct{}
	ended      chan struct{}
}

func hello() answer {
	return answer{
		"hello": 1, "name": "sarama", "version": versionOf("github.com/IBM/sarama"),
		"capabilities": []string{"transactions", "tombstones"},
	}
}

func newLibrary(answers *answers) library {
	return &client{answers: answers, network: &network{}, woken: make(chan struct{}, 1), ended: make(chan struct{})}
}

// perform does a call; without a result the call is answered elsewhere.
func (c *client) perform(one *call) (answer, error) {
	limit, cancel := context.WithTimeout(context.Background(), time.Duration(one.TimeoutMs)*time.Millisecond)
	defer cancel()
	switch one.Method {
	case "new_producer":
		c.properties = one.Properties
		if one.Properties["transactional.id"] != "" {
			return answer{}, nil // it takes charge of its id when it is made
		}
		return answer{}, c.produce()
	case "new_consumer":
		c.properties = one.Properties
		return answer{}, c.connect()
	case "init_transactions":
		return answer{}, c.transact(c.produce)
	case "begin_transaction":
		return answer{}, c.transact(c.producer.BeginTxn)
	case "commit_transaction":
		return answer{}, c.transact(c.producer.CommitTxn)
	case "abort_transaction":
		return answer{}, c.transact(c.producer.AbortTxn)
	case "send":
		c.send(one)
		return nil, nil
	case "assign":
		return answer{}, c.assign(one.Offsets)
	case "poll":
		return c.poll(limit)
	case "ends":
		return c.ends(one.Partitions)
	case "close", "crash":
		c.end(limit, one)
		return answer{}, nil
	}
	return nil, errors.New("no method " + one.Method)
}

func (c *client) connect() (err error) {
	c.library, err = sarama.NewClient(strings.Split(c.properties["bootstrap.servers"], ","), c.configuration())
	return err
}

// produce makes the producer, and tells the ends of its sends.
func (c *client) produce() (err error) {
	if c.library == nil {
		if err = c.connect(); err != nil {
			return err
		}
	}
	producer, err := sarama.NewAsyncProducerFromClient(c.library)
	if err != nil {
		return err
	}
	c.producer = producer
	c.reported.Add(2)
	go func() {
		defer c.reported.Done()
		for sent := range producer.Successes() {
			told := answer{}
			if c.properties["acks"] != "0" {
				told["offset"] = sent.Offset
			}
			c.answers.ok(sent.Metadata.(*call), told)
		}
	}()
	go func() {
		defer c.reported.Done()
		for sent := range producer.Errors() {
			c.answers.fail(sent.Msg.Metadata.(*call), sent.Err)
		}
	}()
	return nil
}

// transact does a call of a transaction; the class of its error is the state of the producer.
func (c *client) transact(call func() error) error {
	err := call()
	if err == nil || c.producer == nil {
		return err
	}
	switch status := c.producer.TxnStatus(); {
	case status&sarama.ProducerTxnFlagFatalError != 0:
		return classed{"fatal", err}
	case status&sarama.ProducerTxnFlagAbortableError != 0:
		return classed{"abortable", err}
	}
	return err
}

func (c *client) send(one *call) {
	sent := &sarama.ProducerMessage{Topic: one.Topic, Partition: one.Partition, Metadata: one}
	if one.Key != nil {
		sent.Key = sarama.ByteEncoder(one.Key)
	}
	if one.Value != nil {
		sent.Value = sarama.ByteEncoder(one.Value)
	}
	for name, value := range one.Headers {
		sent.Headers = append(sent.Headers, sarama.RecordHeader{Key: []byte(name), Value: value})
	}
	// The library has no limit of its own.
	limit := milliseconds(c.properties, "delivery.timeout.ms") + milliseconds(c.properties, "max.block.ms")
	late := time.AfterFunc(limit, func() { c.answers.fail(one, errors.New("no end within the limit")) })
	select {
	case c.producer.Input() <- sent:
	case <-time.After(milliseconds(c.properties, "max.block.ms")):
		late.Stop()
		c.answers.fail(one, classed{"refused", errors.New("the library takes no record")})
	}
}

// assign makes a consumer anew, which reads each log partition by itself.
func (c *client) assign(begins []offset) (err error) {
	if c.consumer != nil {
		close(c.ended)
		c.consumer.Close()
	}
	c.ended, c.records, c.failed = make(chan struct{}), make(chan record), make(chan error, len(begins))
	if c.consumer, err = sarama.NewConsumerFromClient(c.library); err != nil {
		return err
	}
	for _, each := range begins {
		from := sarama.OffsetOldest
		if each.Offset != nil {
			from = *each.Offset
		}
		read, err := c.consumer.ConsumePartition(each.Topic, each.Partition, from)
		if err != nil {
			return err
		}
		go c.hand(read, c.records, c.failed, c.ended)
	}
	return nil
}

// hand gives what was read to polls.
func (c *client) hand(read sarama.PartitionConsumer, records chan record, failed chan error, ended chan struct{}) {
	go func() {
		for told := range read.Errors() {
			select {
			case failed <- told.Err:
			default:
			}
		}
	}()
	for each := range read.Messages() {
		headers := map[string][]byte{}
		for _, header := range each.Headers {
			headers[string(header.Key)] = header.Value
		}
		place := partition{each.Topic, each.Partition}
		select {
		case records <- record{place, each.Offset, each.Key, each.Value, headers}:
		case <-ended:
			return
		}
	}
}

func (c *client) poll(limit context.Context) (answer, error) {
	records := []record{}
	select {
	case each := <-c.records:
		records = append(records, each)
	case err := <-c.failed:
		return nil, err
	case <-c.woken:
	case <-limit.Done():
	}
	for len(records) > 0 && len(records) < recordsMax {
		select {
		case each := <-c.records:
			records = append(records, each)
			continue
		case <-time.After(time.Millisecond):
		}
		break
	}
	return answer{"records": records}, nil
}

// wakeUp ends a poll that waits, or the next one.
func (c *client) wakeUp() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func (c *client) ends(asked []partition) (answer, error) {
	ends := answer{}
	offsets := []offset{}
	for _, each := range asked {
		if end, err := c.library.GetOffset(each.Topic, each.Partition, sarama.OffsetNewest); err != nil {
			ends["error"] = nameOf(err)
		} else {
			offsets = append(offsets, offset{each, &end})
		}
	}
	ends["offsets"] = offsets
	return ends, nil
}

// end closes the client in order within its limit, or, in a crash, after its connections, so that nothing leaves it.
func (c *client) end(limit context.Context, one *call) {
	if one.Method == "crash" {
		c.network.cut()
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if c.producer != nil {
			c.producer.AsyncClose()
			c.reported.Wait()
		}
		if c.consumer != nil {
			close(c.ended)
			c.consumer.Close()
		}
		if c.library != nil {
			c.library.Close()
		}
	}()
	select {
	case <-closed:
	case <-limit.Done():
		c.network.cut()
	}
	c.answers.rest(one)
}

// nameOf is Kafka's name of an error: the library has words and a number.
func nameOf(err error) string {
	var told sarama.KError
	switch {
	case err == nil:
		return "UNKNOWN"
	case errors.As(err, &told):
		return strings.TrimPrefix(strings.SplitN(told.Error(), ":", 2)[0], "kafka server - ")
	}
	return strings.ReplaceAll(err.Error(), ":", " -")
}

func (c *client) configuration() *sarama.Config {
	properties, limit := c.properties, milliseconds(c.properties, "request.timeout.ms")
	chosen := sarama.NewConfig()
	chosen.ClientID = properties["client.id"]
	chosen.Net.DialTimeout, chosen.Net.ReadTimeout, chosen.Net.WriteTimeout = limit, limit, limit
	chosen.Net.Proxy.Enable, chosen.Net.Proxy.Dialer = true, c.network
	chosen.Metadata.RefreshFrequency = milliseconds(properties, "metadata.max.age.ms")
	chosen.Metadata.Retry.Backoff = milliseconds(properties, "retry.backoff.ms")
	chosen.Metadata.AllowAutoTopicCreation = false
	chosen.Consumer.MaxWaitTime = 100 * time.Millisecond
	chosen.Consumer.Return.Errors = true
	if properties["isolation.level"] == "read_committed" {
		chosen.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	if properties["acks"] == "" {
		return chosen
	}
	acks := map[string]sarama.RequiredAcks{"0": sarama.NoResponse, "1": sarama.WaitForLocal}
	wanted, weaker := acks[properties["acks"]]
	if !weaker {
		wanted = sarama.WaitForAll
	}
	producer := &chosen.Producer
	producer.RequiredAcks = wanted
	producer.Timeout = limit
	producer.Partitioner = sarama.NewManualPartitioner
	producer.Return.Successes, producer.Return.Errors = true, true
	producer.Flush.Frequency = milliseconds(properties, "linger.ms")
	producer.Compression.UnmarshalText([]byte(properties["compression.type"]))
	producer.Retry.Backoff = milliseconds(properties, "retry.backoff.ms")
	// The library counts tries, and has no time for all of them.
	producer.Retry.Max = max(1, number(properties, "delivery.timeout.ms")/max(1, number(properties, "retry.backoff.ms")))
	chosen.Net.MaxOpenRequests = number(properties, "max.in.flight.requests.per.connection")
	if properties["enable.idempotence"] == "true" {
		producer.Idempotent = true
		chosen.Net.MaxOpenRequests = 1 // the library demands it
	}
	if id := properties["transactional.id"]; id != "" {
		producer.Transaction.ID = id
		producer.Transaction.Timeout = milliseconds(properties, "transaction.timeout.ms")
	}
	return chosen
}
