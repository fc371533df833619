package wire

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// Kept is what the text that a client holds of a scroll or a point in time
// says: all that another coordinator needs to go on with it.
type Kept struct {
	Point       bool // a point in time; else a scroll
	Context     ContextID
	Expression  string // the indices as they were asked for; of a point, those that it holds
	Size        int    // hits on a page of a scroll
	ServiceTime time.Duration
	Service     cluster.ServiceTime // the cost of a page, as in [SearchRequest]
	Shards      []KeptShard         // by node, then index and shard
}

// KeptShard is a shard and the node that keeps it.
type KeptShard struct {
	Node string
	ShardID
}

// Text returns what [ParseKept] reads: letters, digits, '-' and '_'.
func (k *Kept) Text() string {
	b := []byte{format, 0}
	if k.Point {
		b[1] = 1
	}
	b = binary.AppendUvarint(b, k.Context.Session)
	b = binary.AppendUvarint(b, k.Context.Number)
	b = appendText(b, k.Expression)
	b = binary.AppendUvarint(b, uint64(k.Size))
	b = binary.AppendVarint(b, int64(k.ServiceTime))
	b = appendService(b, k.Service)
	b = binary.AppendUvarint(b, uint64(len(k.Shards)))
	for _, s := range k.Shards {
		b = appendText(b, s.Node)
		b = appendShard(b, s.ShardID)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseKept reads what [Kept.Text] returned. It is total, as the decoders of
// messages are.
func ParseKept(text string) (*Kept, error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("decode context: %w", err)
	}
	d := decode(data)
	d.expectFormat()
	k := &Kept{}
	switch kind := d.byte(); kind {
	case 0, 1:
		k.Point = kind == 1
	default:
		d.fail("a kind is 0 or 1 but was %d", kind)
	}
	k.Context = ContextID{d.unsigned(), d.unsigned()}
	k.Expression, k.Size = d.text(), d.size()
	k.ServiceTime, k.Service = time.Duration(d.signed()), d.service()
	k.Shards = list(&d, nil, 3, func() KeptShard { return KeptShard{d.text(), d.shard()} })
	if k.Context.Number == 0 {
		d.fail("the context is none")
	}
	return k, d.finish("context")
}
