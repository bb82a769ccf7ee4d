// Transactions with franz-go. Speaks the line protocol of lines.py.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 15 * time.Second

type command struct {
	Command         string  `json:"command"`
	Bootstrap       string  `json:"bootstrap"`
	TransactionalID string  `json:"transactional_id"`
	TimeoutMs       int     `json:"timeout_ms"`
	Group           *string `json:"group"`
	Input           string  `json:"input"`
	Topic           string  `json:"topic"`
	Partition       int32   `json:"partition"`
	Value           string  `json:"value"`
	Offset          int64   `json:"offset"`
	Partitions      int32   `json:"partitions"`
	Isolation       string  `json:"isolation"`
	Last            string  `json:"last"`
	FurtherMs       int     `json:"further_ms"`
}

// transactor has a session, which commits the offsets of what it has read in its transactions, if it commits offsets of a group, else a client.
type transactor struct {
	client  *kgo.Client
	session *kgo.GroupTransactSession
}

func (t *transactor) init(ctx context.Context, c command) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(c.Bootstrap, ",")...),
		kgo.ClientID(c.TransactionalID),
		kgo.TransactionalID(c.TransactionalID),
		kgo.TransactionTimeout(time.Duration(c.TimeoutMs) * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
	}
	var err error
	if c.Group == nil {
		t.client, err = kgo.NewClient(options...)
	} else {
		t.session, err = kgo.NewGroupTransactSession(append(options,
			kgo.ConsumerGroup(*c.Group),
			kgo.ConsumeTopics(c.Input),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.RequireStableFetchOffsets(),
			// A static member: a new process gets the partition of a killed one at once.
			kgo.InstanceID(c.TransactionalID),
			// Tests stop and kill brokers: a heartbeat that fails meanwhile makes the session abort its transaction.
			kgo.HeartbeatInterval(5*time.Minute),
			kgo.SessionTimeout(15*time.Minute),
		)...)
		if err == nil {
			t.client = t.session.Client()
		}
	}
	if err != nil {
		return err
	}
	_, _, err = t.client.ProducerID(ctx)
	return err
}

func (t *transactor) begin() error {
	if t.session != nil {
		return t.session.Begin()
	}
	return t.client.BeginTransaction()
}

func (t *transactor) end(ctx context.Context, try kgo.TransactionEndTry) error {
	if t.session == nil {
		return t.client.EndTransaction(ctx, try)
	}
	committed, err := t.session.End(ctx, try)
	if err == nil && committed != bool(try) {
		return errors.New("the session aborted the transaction")
	}
	return err
}

// consume reads partition 0 of the input up to an offset: the session commits what it has read.
func (t *transactor) consume(ctx context.Context, c command) error {
	for next := int64(0); next < c.Offset; {
		fetches := t.session.PollRecords(ctx, 1)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			if record.Partition == 0 {
				next = record.Offset + 1
			}
		})
	}
	return nil
}

func (t *transactor) act(ctx context.Context, c command, response map[string]any) error {
	switch c.Command {
	case "init":
		return t.init(ctx, c)
	case "begin":
		return t.begin()
	case "send":
		record := &kgo.Record{Topic: c.Topic, Partition: c.Partition, Value: []byte(c.Value)}
		return t.client.ProduceSync(ctx, record).FirstErr()
	case "offsets":
		return t.consume(ctx, c)
	case "commit":
		return t.end(ctx, kgo.TryCommit)
	case "abort":
		return t.end(ctx, kgo.TryAbort)
	case "read":
		values, err := read(ctx, c)
		response["values"] = values
		return err
	}
	return fmt.Errorf("unknown command %q", c.Command)
}

func read(ctx context.Context, c command) ([][]string, error) {
	level := kgo.ReadUncommitted()
	if c.Isolation == "read_committed" {
		level = kgo.ReadCommitted()
	}
	starts := map[int32]kgo.Offset{}
	for partition := range c.Partitions {
		starts[partition] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(c.Bootstrap, ",")...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic: starts}),
		kgo.FetchIsolationLevel(level),
		kgo.FetchMaxWait(100*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	values := make([][]string, c.Partitions)
	open := c.Partitions
	collect := func(record *kgo.Record) {
		value := string(record.Value)
		values[record.Partition] = append(values[record.Partition], value)
		if value == c.Last {
			open--
		}
	}
	for open > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return values, err
		}
		fetches.EachRecord(collect)
	}
	further, cancel := context.WithTimeout(ctx, time.Duration(c.FurtherMs)*time.Millisecond)
	defer cancel()
	for further.Err() == nil {
		client.PollFetches(further).EachRecord(collect)
	}
	return values, nil
}

// nameOf returns the name of the broker's error, or the text of another error.
func nameOf(err error) string {
	var code *kerr.Error
	if errors.As(err, &code) {
		return code.Message
	}
	return err.Error()
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	t := &transactor{}
	for input.Scan() {
		response := map[string]any{"error": nil}
		var next command
		if err := json.Unmarshal(input.Bytes(), &next); err != nil {
			panic(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if err := t.act(ctx, next, response); err != nil {
			response["error"], response["message"] = nameOf(err), err.Error()
		}
		cancel()
		text, err := json.Marshal(response)
		if err != nil {
			panic(err)
		}
		os.Stdout.Write(append(text, '\n'))
	}
}
