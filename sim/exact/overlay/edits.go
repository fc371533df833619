package overlay

// edit puts text in the place of an anchor in a source file of the toolchain.
// Anchors are as short as they can be: they name a place and quote nothing.
type edit struct {
	anchor  string
	becomes string
	times   int // how often the anchor stands in the file
}

// source is a file of the toolchain, under GOROOT/src, with its edits.
type source struct {
	name  string
	edits []edit
}

// sources returns what the exact lane changes. The added files say what each
// function that is called here does.
func sources() []source {
	return []source{
		{"runtime/rand.go", []edit{
			{"globalRand.state.Init(*seed)", "wlmsimStartup(seed)\n\tglobalRand.state.Init(*seed)", 1},
			// A new thread takes nothing from the thread that makes it.
			{"mp.cheaprand = rand()", "mp.cheaprand = bootstrapRand()", 1},
			{"c := &mp.chacha8", "if wlmsimDraws() {\n\t\treturn wlmsimNext()\n\t}\n\tc := &mp.chacha8", 1},
		}},
		{"runtime/select.go", []edit{
			{"cheaprandn(uint32(norder", "wlmsimCheapn(uint32(norder", 1}, // the order in which the cases are polled
		}},
		{"runtime/time.go", []edit{
			{"t.rand = cheaprand()", "t.rand = wlmsimCheap()", 1}, // the order of timers of the same instant
		}},
		{"runtime/sema.go", []edit{
			// Whether a mutex is starving.
			{"internal_sync_nanotime() int64 {\n\treturn nanotime()", "internal_sync_nanotime() int64 {\n\treturn wlmsimNanotime()", 1},
		}},
		{"runtime/synctest.go", []edit{
			{"bubble.now = synctestBaseTime", "bubble.now = synctestBaseTime\n\twlmsimEnter()", 1},
			{"bubble.now = next", "unlock(&bubble.mu)\n\t\twlmsimMove(gp)\n\t\tlock(&bubble.mu)\n\t\tbubble.now = next", 1},
		}},
		{"runtime/proc.go", []edit{
			// No slice is over while the lane is on.
			{"pd.schedwhen+forcePreemptNS <= now", "!wlmsim.on && pd.schedwhen+forcePreemptNS <= now", 1},
			// No system call of a bubble loses its processor.
			{"if syst := int64(pp.syscalltick); !sysretake", "if wlmsimInside(thread.gp) {\n\t\t\tthread.resume()\n\t\t\tgoto done\n\t\t}\n\t\tif syst := int64(pp.syscalltick); !sysretake", 1},
			// The scheduler looks at the global queue every so many ticks; only
			// a bubble's goroutines count.
			{"mp.p.ptr().schedtick++", "if !wlmsimOutside(gp) {\n\t\t\tmp.p.ptr().schedtick++\n\t\t}", 1},
			// Whoever is in no bubble goes to the queue and displaces nobody;
			// then the shuffle.
			{"if randomizeScheduler && next &&", "if next && wlmsimOutside(gp) {\n\t\tnext = false\n\t}\n\tif (randomizeScheduler || wlmsim.on && wlmsim.shuffle) && next &&", 1},
			{"cheaprandn(i + 1)", "wlmsimCheapn(i + 1)", 2},
		}},
		// Two maps whose keys are pointers and that are walked through: their
		// order is that of addresses, which do not repeat. Now they are walked
		// through in the order in which they were filled.
		{"context/context.go", []edit{
			{"children map[canceler]struct{}", "born     uint64\n\tchildren map[canceler]uint64", 1},
			{"make(map[canceler]struct{})", "make(map[canceler]uint64)", 1},
			{"p.children[child] = struct{}{}", "p.born++\n\t\t\tp.children[child] = p.born", 1},
			{"for child := range c.children {", "for _, child := range wlmsimOrdered(c.children) {", 1},
		}},
		{"net/http/server.go", []edit{
			{"activeConn map[*conn]struct{}", "born       uint64\n\tactiveConn map[*conn]uint64", 1},
			{"make(map[*conn]struct{})", "make(map[*conn]uint64)", 1},
			{"s.activeConn[c] = struct{}{}", "s.born++\n\t\ts.activeConn[c] = s.born", 1},
			{"for c := range s.activeConn {", "for _, c := range wlmsimOrdered(s.activeConn) {", 2},
		}},
	}
}
