/* A common start for each timed operation, the same for all peers of run.py. Ranks leave a barrier one after another,
   in an order that depends on the library: leaving early is a head start in one library and waiting time in another. So
   if each rank has a core (TOGETHER is set), all ranks begin at a time that rank 0 broadcasts. */
#pragma once

#include <stdlib.h>
#include <time.h>

/* Microseconds, on the monotonic clock that all processes of a host share. */
static inline double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static inline int begins_together(void) { return getenv("TOGETHER") != NULL; }

/* Late enough for a broadcast of it to arrive in time. */
static inline double soon_us(void) { return now_us() + 5; }

static inline double wait_until(double us) {
  double now = now_us();
  while (now < us) now = now_us();
  return now;
}
