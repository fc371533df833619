package explore

import (
	"fmt"
	"slices"

	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/netsim"
	simworld "github.com/wlmsim/wlmsim/sim/world"
)

// traffic are the kinds of streams between nodes, by the port that one of the
// two listens on.
var traffic = []struct {
	name string
	port int
}{{"gossip", simworld.GossipPort}, {"raft", simworld.RaftPort}}

// road is what is under way from one node to another, of one kind. Its first
// lane is the arrival of the message that has waited longest as the next one of
// its stream, the next lane that of another stream, which overtakes it, and so on.
type road struct {
	from, to string
	port     int
}

// maxAbreast bounds the lanes of a road.
const maxAbreast = 3

// pave makes the lanes of the roads: as many for each as there is room for, and
// then for those of the first leader, by which everything goes.
func (x *fleet) pave(nodes []string) {
	type paved struct {
		road
		name string
	}
	var roads []paved
	for _, from := range nodes {
		for _, to := range nodes {
			for _, kind := range traffic {
				voters := from[0] == 'm' || to[0] == 'm' // of data nodes none talks raft to another
				if from != to && (voters || kind.port != simworld.RaftPort) {
					roads = append(roads, paved{road{from, to, kind.port}, from + ">" + to + "." + kind.name})
				}
			}
		}
	}
	room := maxLanes - len(x.lanes) - 1 // one is for time that passes
	for n := range maxAbreast {
		next := roads
		if len(next) > room {
			next = slices.DeleteFunc(slices.Clone(roads), func(r paved) bool { return r.from != firstLeader && r.to != firstLeader })
		}
		if len(next) > room {
			break
		}
		room -= len(next)
		for _, r := range next {
			name := r.name
			if n > 0 {
				name = fmt.Sprintf("%s.%d", r.name, n+1)
			}
			lane := x.add(name)
			x.roads[r.road], x.byLane[lane] = append(x.roads[r.road], lane), r.road
		}
	}
}

// explored says which messages are explored: what nodes say to one another over
// streams, and, where the cluster has to get over something, how connections
// are made and end. A node that starts again does that by itself. It is called
// with the network's lock.
func (x *fleet) explored(from, to string, port int, what netsim.Kind) bool {
	if _, ok := x.roads[road{from, to, port}]; !ok || what != netsim.Data && !x.shaken {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.down[from] != rising && x.down[to] != rising
}

// arrival is a message that could arrive next, in the turn of a lane.
type arrival struct {
	lane    int
	message netsim.Delivery
}

// arrivals are the messages that could arrive next.
func (x *fleet) arrivals() []arrival {
	var all []arrival
	abreast := map[road]int{}
	for _, d := range x.cluster.Network().Held() {
		r := road{d.From, d.To, d.Port}
		if n, lanes := abreast[r], x.roads[r]; n < len(lanes) {
			all = append(all, arrival{lanes[n], d})
			abreast[r]++
		}
	}
	return all
}

// deliver lets the message of a lane arrive.
func (x *fleet) deliver(lane int) {
	for _, a := range x.arrivals() {
		if a.lane != lane {
			continue
		}
		e := history.Event{Kind: message, Node: a.message.To}
		if a.message.Kind != netsim.Data {
			e.Detail = a.message.Kind.String()
		}
		x.note(lane, e)
		x.cluster.Network().Deliver(a.message)
		return
	}
}

// message is the kind of the event that a message arrives.
const message = "message"
