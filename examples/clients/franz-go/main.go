// franz-go as a client program of ackproof: `go build -o client . && ackproof client check ./client`.
package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func hello() answer {
	return answer{
		"hello": 1, "name": "franz-go", "version": versionOf("github.com/twmb/franz-go"),
		"capabilities": []string{"tombstones", "subscription", "commits"},
	}
}

func newLibrary(answers *answers) library {
	return &client{answers: answers}
}

type client struct {
	answers    *answers
	properties map[string]string
	library    *kgo.Client
	network    *network
	wake       context.CancelFunc
	woken      bool
	mutex      sync.Mutex
}

// perform does a call; without a result the call is answered elsewhere.
func (c *client) perform(one *call) (answer, error) {
	limit, cancel := context.WithTimeout(context.Background(), time.Duration(one.TimeoutMs)*time.Millisecond)
	defer cancel()
	switch one.Method {
	case "new_producer":
		c.properties = one.Properties
		return answer{}, c.connect(producerOptions(one.Properties)...)
	case "new_consumer":
		c.properties = one.Properties
		if one.Properties["group.id"] != "" {
			return answer{}, nil // a member is made with its topics
		}
		return answer{}, c.connect(consumerOptions(one.Properties)...)
	case "send":
		c.send(one)
		return nil, nil
	case "assign":
		return answer{}, c.assign(one.Offsets)
	case "subscribe":
		return answer{}, c.subscribe(one)
	case "poll":
		return c.poll(limit)
	case "ends":
		return c.ends(limit, one.Partitions)
	case "commit":
		return answer{}, c.commit(limit, one.Offsets)
	case "committed":
		return c.committed(limit, one.Partitions)
	case "close", "crash":
		c.end(limit, one)
		return answer{}, nil
	}
	return nil, errors.New("no method " + one.Method)
}

// connect makes the library's client, in the place of an earlier one.
func (c *client) connect(options ...kgo.Opt) (err error) {
	if c.library != nil {
		c.library.Close()
	}
	c.network = &network{}
	c.library, err = kgo.NewClient(append(options, kgo.Dialer(c.network.dial))...)
	return err
}

func (c *client) send(one *call) {
	sent := &kgo.Record{Topic: one.Topic, Partition: one.Partition, Key: one.Key, Value: one.Value}
	for name, value := range one.Headers {
		sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: name, Value: value})
	}
	c.library.TryProduce(context.Background(), sent, func(written *kgo.Record, err error) {
		switch {
		case errors.Is(err, kgo.ErrMaxBuffered):
			c.answers.fail(one, classed{"refused", err})
		case err != nil:
			c.answers.fail(one, err)
		case c.properties["acks"] == "0" || written.Offset < 0: // brokers tell none of a duplicate
			c.answers.ok(one, answer{})
		default:
			c.answers.ok(one, answer{"offset": written.Offset})
		}
	})
}

// assign makes a consumer anew: the library takes log partitions when it is made.
func (c *client) assign(begins []offset) error {
	from := map[string]map[int32]kgo.Offset{}
	for _, each := range begins {
		if from[each.Topic] == nil {
			from[each.Topic] = map[int32]kgo.Offset{}
		}
		from[each.Topic][each.Partition] = kgo.NewOffset().AtStart()
		if each.Offset != nil {
			from[each.Topic][each.Partition] = kgo.NewOffset().At(*each.Offset)
		}
	}
	return c.connect(append(consumerOptions(c.properties), kgo.ConsumePartitions(from))...)
}

// subscribe makes a member of the group, and tells what the group leaves to it.
func (c *client) subscribe(one *call) error {
	assigned := map[partition]bool{}
	var mutex sync.Mutex
	changed := func(library *kgo.Client, topics map[string][]int32, added bool) {
		mutex.Lock()
		defer mutex.Unlock()
		for topic, numbers := range topics {
			for _, number := range numbers {
				delete(assigned, partition{topic, number})
				if added {
					assigned[partition{topic, number}] = true
				}
			}
		}
		left := []partition{}
		for each := range assigned {
			left = append(left, each)
		}
		_, generation := library.GroupMetadata()
		c.answers.say(answer{"call": one.Call, "event": "assigned", "partitions": left, "generation": generation})
	}
	options := append(consumerOptions(c.properties), kgo.ConsumeTopics(one.Topics...))
	options = append(options, groupOptions(c.properties)...)
	return c.connect(append(options,
		kgo.OnPartitionsAssigned(func(_ context.Context, library *kgo.Client, topics map[string][]int32) {
			changed(library, topics, true)
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, library *kgo.Client, topics map[string][]int32) {
			changed(library, topics, false)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, library *kgo.Client, topics map[string][]int32) {
			changed(library, topics, false)
		}),
	)...)
}

func (c *client) poll(limit context.Context) (answer, error) {
	limit, cancel := context.WithCancel(limit)
	defer cancel()
	c.mutex.Lock()
	c.wake = cancel
	if c.woken {
		cancel()
	}
	c.mutex.Unlock()
	defer func() {
		c.mutex.Lock()
		c.wake, c.woken = nil, false
		c.mutex.Unlock()
	}()
	fetched := c.library.PollRecords(limit, 500)
	records := []record{}
	fetched.EachRecord(func(each *kgo.Record) {
		headers := map[string][]byte{}
		for _, header := range each.Headers {
			headers[header.Key] = header.Value
		}
		place := partition{each.Topic, each.Partition}
		records = append(records, record{place, each.Offset, each.Key, each.Value, headers})
	})
	for _, failed := range fetched.Errors() {
		if len(records) == 0 && limit.Err() == nil {
			return nil, failed.Err
		}
	}
	return answer{"records": records}, nil
}

// wakeUp ends a poll that waits, or the next one.
func (c *client) wakeUp() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.woken = true
	if c.wake != nil {
		c.wake()
	}
}

func (c *client) ends(limit context.Context, asked []partition) (answer, error) {
	list := kadm.NewClient(c.library).ListEndOffsets
	if c.properties["isolation.level"] == "read_committed" {
		list = kadm.NewClient(c.library).ListCommittedOffsets
	}
	told, err := list(limit, topicsOf(asked)...)
	if err != nil {
		return nil, err
	}
	ends := answer{"offsets": []offset{}}
	for _, each := range asked {
		if end, there := told.Lookup(each.Topic, each.Partition); !there || end.Err != nil {
			ends["error"] = nameOf(errors.Join(end.Err))
		} else {
			ends["offsets"] = append(ends["offsets"].([]offset), offset{each, &end.Offset})
		}
	}
	return ends, nil
}

func (c *client) commit(limit context.Context, offsets []offset) (result error) {
	wanted := map[string]map[int32]kgo.EpochOffset{}
	for _, each := range offsets {
		if wanted[each.Topic] == nil {
			wanted[each.Topic] = map[int32]kgo.EpochOffset{}
		}
		wanted[each.Topic][each.Partition] = kgo.EpochOffset{Epoch: -1, Offset: *each.Offset}
	}
	c.library.CommitOffsetsSync(limit, wanted, func(
		_ *kgo.Client, _ *kmsg.OffsetCommitRequest, told *kmsg.OffsetCommitResponse, err error,
	) {
		result = err
		for _, topic := range told.Topics {
			for _, each := range topic.Partitions {
				result = errors.Join(result, kerr.ErrorForCode(each.ErrorCode))
			}
		}
	})
	return result
}

func (c *client) committed(limit context.Context, asked []partition) (answer, error) {
	told, err := kadm.NewClient(c.library).FetchOffsets(limit, c.properties["group.id"])
	if err != nil {
		return nil, err
	}
	offsets := []offset{}
	for _, each := range asked {
		if known, there := told.Lookup(each.Topic, each.Partition); there && known.At >= 0 {
			offsets = append(offsets, offset{each, &known.At})
		}
	}
	return answer{"offsets": offsets}, nil
}

// end closes the client in order within its limit, or, in a crash, after its connections, so that nothing leaves it.
func (c *client) end(limit context.Context, one *call) {
	if c.library != nil {
		if one.Method == "crash" {
			c.network.cut()
		}
		closed := make(chan struct{})
		go func() { c.library.Close(); close(closed) }()
		select {
		case <-closed:
		case <-limit.Done():
			c.network.cut()
			<-closed
		}
	}
	c.answers.rest(one)
}

// nameOf is Kafka's name of an error, or the library's words.
func nameOf(err error) string {
	var told *kerr.Error
	switch {
	case err == nil:
		return "UNKNOWN"
	case errors.As(err, &told):
		return told.Message
	}
	return strings.ReplaceAll(err.Error(), ":", " -")
}

func topicsOf(partitions []partition) (topics []string) {
	for _, each := range partitions {
		topics = append(topics, each.Topic)
	}
	return topics
}

func commonOptions(properties map[string]string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(strings.Split(properties["bootstrap.servers"], ",")...),
		kgo.ClientID(properties["client.id"]),
		kgo.RequestTimeoutOverhead(milliseconds(properties, "request.timeout.ms")),
		kgo.MetadataMaxAge(milliseconds(properties, "metadata.max.age.ms")),
		kgo.MetadataMinAge(milliseconds(properties, "retry.backoff.ms")),
	}
}

func producerOptions(properties map[string]string) []kgo.Opt {
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck()}
	wanted, weaker := acks[properties["acks"]]
	if !weaker {
		wanted = kgo.AllISRAcks()
	}
	codecs := map[string]kgo.CompressionCodec{
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
		"zstd": kgo.ZstdCompression(), "none": kgo.NoCompression(),
	}
	options := append(commonOptions(properties),
		kgo.RequiredAcks(wanted),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProduceRequestTimeout(milliseconds(properties, "request.timeout.ms")),
		kgo.RecordDeliveryTimeout(milliseconds(properties, "delivery.timeout.ms")),
		kgo.ProducerLinger(milliseconds(properties, "linger.ms")),
		kgo.ProducerBatchCompression(codecs[properties["compression.type"]]),
	)
	if properties["enable.idempotence"] != "true" {
		options = append(options, kgo.DisableIdempotentWrite(),
			kgo.MaxProduceRequestsInflightPerBroker(number(properties, "max.in.flight.requests.per.connection")))
	}
	return options
}

func consumerOptions(properties map[string]string) []kgo.Opt {
	options := append(commonOptions(properties),
		kgo.FetchMaxWait(milliseconds(properties, "fetch.max.wait.ms")),
		kgo.FetchMaxBytes(int32(number(properties, "fetch.max.bytes"))),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Rack(properties["client.rack"]),
	)
	if properties["isolation.level"] == "read_committed" {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	return options
}

func groupOptions(properties map[string]string) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ConsumerGroup(properties["group.id"]),
		kgo.SessionTimeout(milliseconds(properties, "session.timeout.ms")),
		kgo.HeartbeatInterval(milliseconds(properties, "heartbeat.interval.ms")),
		kgo.RebalanceTimeout(milliseconds(properties, "max.poll.interval.ms")),
	}
	if instance := properties["group.instance.id"]; instance != "" {
		options = append(options, kgo.InstanceID(instance))
	}
	if properties["auto.offset.reset"] == "latest" {
		options = append(options, kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
	}
	if properties["enable.auto.commit"] == "true" {
		return append(options, kgo.AutoCommitInterval(milliseconds(properties, "auto.commit.interval.ms")))
	}
	return append(options, kgo.DisableAutoCommit())
}
