/* When an operation begins, alike for all peers of run.py. Ranks leave a barrier one after the other, in an order that
   is each library's own: a rank that leaves it early is head start for one library and waiting time for another. So,
   where each rank has a core (TOGETHER is set), all begin at a moment that rank 0 names. */
#pragma once

#include <stdlib.h>
#include <time.h>

/* Microseconds, on the clock that all processes of the host have. */
static inline double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static inline int begins_together(void) { return getenv("TOGETHER") != NULL; }

/* Far enough for a broadcast of it to arrive before. */
static inline double soon_us(void) { return now_us() + 5; }

static inline double wait_until(double us) {
  double now = now_us();
  while (now < us) now = now_us();
  return now;
}
