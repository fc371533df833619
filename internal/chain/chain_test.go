package chain_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/internal/chain"
)

type item struct {
	number int
	place  chain.Place[item]
}

func TestAgainstASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list chain.List[item]
		var listed []*item // what should be on the list
		var out []*item    // what was taken out
		remove := func(i int) {
			list.Remove(&listed[i].place)
			out = append(out, listed[i])
			listed = slices.Delete(listed, i, i+1)
		}
		number := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Equal(t, append([]*item{}, listed...), slices.AppendSeq([]*item{}, list.All()))
				require.Equal(t, len(listed), list.Len())
				if len(listed) == 0 {
					require.Nil(t, list.First())
				} else {
					require.Same(t, listed[0], list.First())
				}
				for _, x := range listed {
					require.True(t, x.place.Listed())
				}
				for _, x := range out {
					require.False(t, x.place.Listed())
				}
			},
			"add": func(*rapid.T) {
				x := &item{number: number}
				number++
				list.Add(x, &x.place)
				listed = append(listed, x)
			},
			"add again": func(t *rapid.T) {
				if len(out) == 0 {
					return
				}
				i := rapid.IntRange(0, len(out)-1).Draw(t, "item")
				x := out[i]
				out = slices.Delete(out, i, i+1)
				list.Add(x, &x.place)
				listed = append(listed, x)
			},
			"remove": func(t *rapid.T) {
				if len(listed) > 0 {
					remove(rapid.IntRange(0, len(listed)-1).Draw(t, "item"))
				}
			},
			"remove what is not listed": func(t *rapid.T) {
				if len(out) > 0 {
					list.Remove(&rapid.SampledFrom(out).Draw(t, "item").place)
				}
			},
			"remove some while they are yielded": func(t *rapid.T) {
				was := slices.Clone(listed)
				most := rapid.IntRange(0, len(was)).Draw(t, "most")
				var seen []*item
				for x := range list.All() {
					if len(seen) == most {
						break
					}
					seen = append(seen, x)
					if rapid.Bool().Draw(t, "remove") {
						remove(slices.Index(listed, x))
					}
				}
				require.Equal(t, append([]*item{}, was[:most]...), append([]*item{}, seen...))
			},
		})
	})
}
