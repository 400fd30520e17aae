// Threads that each do a share of the same work at once. They stay alive and wait for the next work.
#pragma once

namespace trellis::kernels {

// Calls work(context, thread, threads) on each of `threads` threads at once and waits for all; work must not throw. The
// calling thread is the first, and the others work only for it. A call from inside of such work does all shares itself.
void run_team(int threads, void (*work)(void* context, int thread, int threads), void* context);

// How long a team's threads spin while they wait for each other, before they sleep. A long time is fastest if each
// thread has a core of its own; otherwise spinning takes CPU time from the threads that are waited for. If all teams
// together have more threads than this process has cores, they spin for a short time whatever is set here. Where the
// environment has OMP_WAIT_POLICY or GOMP_SPINCOUNT, they say how long both times are, as for GCC's OpenMP.
enum class TeamSpinTime : unsigned char { long_time, short_time };
void set_team_wait(TeamSpinTime);
TeamSpinTime team_wait();  // which applies to the next wait: short_time if there are too many threads

// How often a waiting thread looks whether it may go on. `policy` and `count` are the values of those two variables,
// null if not set.
struct TeamSpinCounts {
  long long with_cores = 0, without = 0;
  bool adapts = true;  // looks less often after a wait in vain
};
TeamSpinCounts team_spins_of(const char* policy, const char* count);

}  // namespace trellis::kernels
