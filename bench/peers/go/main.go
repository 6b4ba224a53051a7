// SPDX-License-Identifier: Apache-2.0

// The Go contestant: document A's checker under the protocol of bench/README.md. It says
// who it is in one line, then runs a round and prints a line for each line on stdin.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// random is splitmix64: the same keys for every contestant that is given the same seed.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// uuid is the text of key number index: version 4, 36 bytes, lower case.
func uuid(seed, index uint64) string {
	const digits = "0123456789abcdef"
	r := random(seed ^ index*0xd1342543de82ef95)
	high := r.next()&^0xf000 | 0x4000
	low := r.next()&^(3<<62) | 2<<62
	var text [36]byte
	at := 0
	for i := 0; i < 32; i++ {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			text[at] = '-'
			at++
		}
		word := high
		if i >= 16 {
			word = low
		}
		text[at] = digits[word>>(60-4*(i%16))&15]
		at++
	}
	return string(text[:])
}

// usage is a point in time: wall clock and the CPU time of the whole process.
type usage struct {
	wall time.Time
	cpu  int64
}

func usageNow() usage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		fail("getrusage: %v", err)
	}
	return usage{time.Now(), r.Utime.Nano() + r.Stime.Nano()}
}

func (from usage) measure(name string, ops int) string {
	to := usageNow()
	return fmt.Sprintf(`"%s":{"ops":%d,"wall_ns":%d,"cpu_ns":%d}`,
		name, ops, to.wall.Sub(from.wall).Nanoseconds(), to.cpu-from.cpu)
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "go checker: "+format+"\n", args...)
	os.Exit(1)
}

// pass gives every key to the checker and dies if one answer is not the expected one.
func pass(c *checker, keys []string, expected bool) {
	for _, key := range keys {
		if c.duplicate(key) != expected {
			fail("key %s: duplicate is not %v", key, expected)
		}
	}
}

func round(count int, seed uint64, atomic bool) {
	first := make([]string, count)
	for i := range first {
		first[i] = uuid(seed, uint64(i))
	}
	// The second pass comes in another order and with text of its own: equal pointers
	// would let the map answer without comparing.
	order := make([]int, count)
	r := random(seed + 1)
	for i := range order {
		order[i] = i
		j := int(r.next() % uint64(i+1))
		order[i], order[j] = order[j], order[i]
	}
	second := make([]string, count)
	for i, index := range order {
		second[i] = uuid(seed, uint64(index))
	}
	order = nil
	c := newChecker(24*time.Hour, 5*time.Minute, atomic)
	runtime.GC()

	start := usageNow()
	pass(c, first, false)
	fresh := start.measure("new", count)

	runtime.GC()
	start = usageNow()
	pass(c, second, true)
	fmt.Printf("{%s,%s}\n", fresh, start.measure("dup", count))
	c.close()
}

func main() {
	count := flag.Int("keys", 1000000, "keys in a round")
	atomic := flag.Bool("atomic", false, "LoadOrStore in place of Load, then Store")
	flag.Parse()
	fmt.Printf(`{"contestant":"document A's checker","version":"%s"}`+"\n", runtime.Version())
	input := bufio.NewScanner(os.Stdin)
	for seed := uint64(1); input.Scan(); seed++ {
		// Every contestant begins a round on fresh memory, as a process that grows does.
		debug.FreeOSMemory()
		round(*count, seed, *atomic)
	}
}
