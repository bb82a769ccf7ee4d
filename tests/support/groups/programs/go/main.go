// A group member with franz-go. Speaks the line protocol of lines.py.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const mostRecords = 50

type command struct {
	Command          string   `json:"command"`
	Member           string   `json:"member"`
	Bootstrap        string   `json:"bootstrap"`
	Group            string   `json:"group"`
	Topics           []string `json:"topics"`
	Protocol         string   `json:"protocol"`
	Assignor         string   `json:"assignor"`
	InstanceID       *string  `json:"instance_id"`
	SessionTimeoutMs int      `json:"session_timeout_ms"`
}

type member struct {
	name      string
	mutex     sync.Mutex
	positions map[string]map[int32]kgo.EpochOffset
}

func (m *member) emit(event string, fields map[string]any) {
	line := map[string]any{"member": m.name, "event": event}
	for name, value := range fields {
		line[name] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(text, '\n'))
}

func listed(partitions map[string][]int32) [][]any {
	list := [][]any{}
	for topic, indexes := range partitions {
		for _, index := range indexes {
			list = append(list, []any{topic, index})
		}
	}
	return list
}

func (m *member) assigned(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	m.emit("assigned", map[string]any{"partitions": listed(partitions)})
}

func (m *member) released(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		for topic, indexes := range partitions {
			for _, index := range indexes {
				delete(m.positions[topic], index)
			}
		}
		m.emit(event, map[string]any{"partitions": listed(partitions)})
	}
}

func (m *member) report(fetches kgo.Fetches) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	records := [][]any{}
	fetches.EachRecord(func(record *kgo.Record) {
		records = append(records, []any{record.Topic, record.Partition, record.Offset})
		if m.positions[record.Topic] == nil {
			m.positions[record.Topic] = map[int32]kgo.EpochOffset{}
		}
		m.positions[record.Topic][record.Partition] = kgo.EpochOffset{Epoch: -1, Offset: record.Offset + 1}
	})
	if len(records) > 0 {
		m.emit("records", map[string]any{"records": records})
	}
}

func (m *member) commit(client *kgo.Client) {
	m.mutex.Lock()
	offsets := map[string]map[int32]kgo.EpochOffset{}
	list := [][]any{}
	for topic, positions := range m.positions {
		offsets[topic] = map[int32]kgo.EpochOffset{}
		for index, position := range positions {
			offsets[topic][index] = position
			list = append(list, []any{topic, index, position.Offset})
		}
	}
	m.mutex.Unlock()
	var failed error
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		failed = commitError(response, err)
	})
	if failed != nil {
		m.emit("commit failed", map[string]any{"error": failed.Error()})
	} else {
		m.emit("committed", map[string]any{"offsets": list})
	}
}

// commitError returns the first error of a commit, also one of a single partition.
func commitError(response *kmsg.OffsetCommitResponse, err error) error {
	if err != nil {
		return err
	}
	for _, topic := range response.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}

func options(start command, m *member) []kgo.Opt {
	made := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(start.Bootstrap, ",")...),
		kgo.ClientID(start.Member),
		kgo.ConsumerGroup(start.Group),
		kgo.ConsumeTopics(start.Topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.MetadataMaxAge(2 * time.Second),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.SessionTimeout(time.Duration(start.SessionTimeoutMs) * time.Millisecond),
		kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.OnPartitionsAssigned(m.assigned),
		kgo.OnPartitionsRevoked(m.released("revoked")),
		kgo.OnPartitionsLost(m.released("lost")),
	}
	if start.Assignor == "cooperative-sticky" {
		made = append(made, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	} else {
		made = append(made, kgo.Balancers(kgo.RangeBalancer()))
	}
	if start.Protocol == "consumer" {
		made = append(made, kgo.ServerSideBalancer())
	}
	if start.InstanceID != nil {
		made = append(made, kgo.InstanceID(*start.InstanceID))
	}
	return made
}

func main() {
	os.Stdout.Write([]byte("{\"event\": \"ready\"}\n"))
	input := bufio.NewScanner(os.Stdin)
	input.Scan()
	var start command
	if err := json.Unmarshal(input.Bytes(), &start); err != nil {
		panic(err)
	}
	m := &member{name: start.Member, positions: map[string]map[int32]kgo.EpochOffset{}}
	client, err := kgo.NewClient(options(start, m)...)
	if err != nil {
		panic(err)
	}
	commands := make(chan command, 100)
	go func() {
		for input.Scan() {
			var next command
			if err := json.Unmarshal(input.Bytes(), &next); err != nil {
				panic(err)
			}
			commands <- next
		}
		commands <- command{Command: "stop"}
	}()
	topics := start.Topics
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		m.report(client.PollRecords(ctx, mostRecords))
		cancel()
		client.AllowRebalance()
		select {
		case next := <-commands:
			switch next.Command {
			case "commit":
				m.commit(client)
			case "subscribe":
				client.AddConsumeTopics(next.Topics...)
				for _, topic := range topics {
					if !slices.Contains(next.Topics, topic) {
						client.PurgeTopicsFromConsuming(topic)
					}
				}
				topics = next.Topics
			default:
				client.CloseAllowingRebalance()
				m.emit("stopped", nil)
				return
			}
		default:
		}
	}
}
