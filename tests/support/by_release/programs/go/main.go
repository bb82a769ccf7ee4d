// The tasks with franz-go; see tasks.py.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	patience            = 12 * time.Second
	brokers             = 3
	given               = "given"
	resumeAt            = 4
	offsetInTransaction = 7
)

var (
	bootstrap = os.Args[1]
	name      = os.Args[2]
	values    = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
)

func client(options ...kgo.Opt) (*kgo.Client, error) {
	common := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ClientID(name),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(patience),
	}
	return kgo.NewClient(append(common, options...)...)
}

// with runs an action with a client, which is closed afterwards.
func with(action func(*kgo.Client) error, options ...kgo.Opt) error {
	made, err := client(options...)
	if err != nil {
		return err
	}
	defer made.CloseAllowingRebalance()
	return action(made)
}

func connect(ctx context.Context) error {
	return with(func(client *kgo.Client) error {
		topics, err := kadm.NewClient(client).ListTopics(ctx, given)
		if err == nil && len(topics[given].Partitions) != 1 {
			return errors.New("no partition")
		}
		return err
	})
}

func produce(ctx context.Context, topic string, options ...kgo.Opt) error {
	return with(func(client *kgo.Client) error {
		return client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("value")}).FirstErr()
	}, options...)
}

func read(ctx context.Context, client *kgo.Client, expected []string) error {
	seen := []string{}
	for len(seen) < len(expected) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) { seen = append(seen, string(record.Value)) })
	}
	if !slices.Equal(seen, expected) {
		return fmt.Errorf("read %v", seen)
	}
	return nil
}

func readAll(ctx context.Context, topic string, expected []string, options ...kgo.Opt) error {
	start := kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}})
	return with(func(client *kgo.Client) error { return read(ctx, client, expected) }, append(options, start)...)
}

func group(ctx context.Context, id string, options ...kgo.Opt) error {
	options = append(options,
		kgo.ConsumerGroup(id),
		kgo.ConsumeTopics(given),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	)
	first := with(func(client *kgo.Client) error {
		if err := read(ctx, client, values); err != nil {
			return err
		}
		var failed error
		offsets := map[string]map[int32]kgo.EpochOffset{given: {0: {Epoch: -1, Offset: resumeAt}}}
		client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			if failed = err; err == nil {
				failed = kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode)
			}
		})
		return failed
	}, options...)
	if first != nil {
		return first
	}
	return with(func(client *kgo.Client) error { return read(ctx, client, values[resumeAt:]) }, options...)
}

func describeCluster(ctx context.Context) error {
	return with(func(client *kgo.Client) error {
		metadata, err := kadm.NewClient(client).BrokerMetadata(ctx)
		if err == nil && len(metadata.Brokers) != brokers {
			return fmt.Errorf("brokers %v", metadata.Brokers.NodeIDs())
		}
		return err
	})
}

func createTopic(ctx context.Context) error {
	return with(func(client *kgo.Client) error {
		_, err := kadm.NewClient(client).CreateTopic(ctx, 2, 1, nil, name+"-created")
		return err
	})
}

func addPartitions(ctx context.Context) error {
	return with(func(client *kgo.Client) error {
		responses, err := kadm.NewClient(client).UpdatePartitions(ctx, 2, name+"-partitions")
		if err != nil {
			return err
		}
		_, err = responses.On(name+"-partitions", nil)
		return errors.Join(err, responses.Error())
	})
}

func describeConfigs(ctx context.Context) error {
	return with(func(client *kgo.Client) error {
		resources, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, given)
		if err != nil {
			return err
		}
		resource, err := resources.On(given, nil)
		if err == nil && resource.Err == nil && len(resource.Configs) == 0 {
			return errors.New("no settings")
		}
		return errors.Join(err, resource.Err)
	})
}

func listTopics(ctx context.Context) error {
	return with(func(client *kgo.Client) error {
		topics, err := kadm.NewClient(client).ListTopics(ctx)
		if err == nil && !topics.Has(given) {
			return fmt.Errorf("listed %v", topics.Names())
		}
		return err
	})
}

func transaction(ctx context.Context, topic string) error {
	err := with(func(client *kgo.Client) error {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("value")}).FirstErr(); err != nil {
			return err
		}
		return client.EndTransaction(ctx, kgo.TryCommit)
	}, kgo.TransactionalID(topic))
	if err != nil {
		return err
	}
	return readAll(ctx, topic, []string{"value"}, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
}

// transactionWithOffsets commits the offset after what its session has read: franz-go has no function that takes offsets.
func transactionWithOffsets(ctx context.Context, topic string) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ClientID(name),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionalID(topic),
		kgo.ConsumerGroup(topic),
		kgo.ConsumeTopics(given),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	for next := int64(0); next < offsetInTransaction; {
		fetches := session.PollRecords(ctx, 1)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) { next = record.Offset + 1 })
	}
	if err := session.Begin(); err != nil {
		return err
	}
	if err := session.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("value")}).FirstErr(); err != nil {
		return err
	}
	if committed, err := session.End(ctx, kgo.TryCommit); err != nil || !committed {
		return errors.Join(err, fmt.Errorf("committed: %v", committed))
	}
	return readAll(ctx, topic, []string{"value"}, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
}

// textOf returns the outcome of a task that returned this error.
func textOf(err error) string {
	if err == nil {
		return "works"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "waits"
	}
	return err.Error()
}

func main() {
	tasks := map[string]func(context.Context) error{
		"connect": connect,
		"produce": func(ctx context.Context) error {
			return produce(ctx, name+"-produce", kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.AllISRAcks()))
		},
		"idempotent produce": func(ctx context.Context) error { return produce(ctx, name+"-idempotent") },
		"consume":            func(ctx context.Context) error { return readAll(ctx, given, values) },
		"group":              func(ctx context.Context) error { return group(ctx, name+"-classic") },
		"new group": func(ctx context.Context) error {
			return group(ctx, name+"-consumer", kgo.ServerSideBalancer())
		},
		"describe cluster":         describeCluster,
		"create topic":             createTopic,
		"add partitions":           addPartitions,
		"describe configs":         describeConfigs,
		"list topics":              listTopics,
		"transaction":              func(ctx context.Context) error { return transaction(ctx, name+"-transaction") },
		"offsets in a transaction": func(ctx context.Context) error { return transactionWithOffsets(ctx, name+"-offsets") },
	}
	var running sync.WaitGroup
	var printing sync.Mutex
	for task, action := range tasks {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			outcome := textOf(action(ctx))
			printing.Lock()
			defer printing.Unlock()
			line, err := json.Marshal(map[string]any{"task": task, "outcome": outcome, "note": nil})
			if err != nil {
				panic(err)
			}
			os.Stdout.Write(append(line, '\n'))
		})
	}
	running.Wait()
}
