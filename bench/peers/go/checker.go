// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"
)

// mark is what the checker keeps for a key: when it was seen, and until when it counts.
type mark struct {
	seen    time.Time
	expires time.Time
}

// checker follows the algorithm of document A: one sync.Map from key to mark, looked up
// first and stored second, and a goroutine that walks the map now and then and drops what
// has expired. Rewritten for this bench; only the steps and the types that they cost
// (a string key and a struct of two times, both boxed by sync.Map) are the document's.
type checker struct {
	marks  sync.Map
	ttl    time.Duration
	atomic bool // one LoadOrStore in place of the document's Load, then Store
	quit   chan struct{}
}

func newChecker(ttl, cleanupEvery time.Duration, atomic bool) *checker {
	c := &checker{ttl: ttl, atomic: atomic, quit: make(chan struct{})}
	go c.cleanup(cleanupEvery)
	return c
}

func (c *checker) close() { close(c.quit) }

// duplicate reports whether key was marked before and still counts; else it marks it.
func (c *checker) duplicate(key string) bool {
	now := time.Now()
	if found, ok := c.marks.Load(key); ok {
		if !now.After(found.(mark).expires) {
			return true
		}
		c.marks.Delete(key)
	}
	fresh := mark{seen: now, expires: now.Add(c.ttl)}
	if c.atomic {
		_, loaded := c.marks.LoadOrStore(key, fresh)
		return loaded
	}
	c.marks.Store(key, fresh)
	return false
}

func (c *checker) cleanup(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-c.quit:
			return
		case now := <-ticker.C:
			c.marks.Range(func(key, found any) bool {
				if now.After(found.(mark).expires) {
					c.marks.Delete(key)
				}
				return true
			})
		}
	}
}
