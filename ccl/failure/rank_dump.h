// Contents of a rank's dump: the state of one communicator at one moment. The flight recorder writes it; `trellis
// doctor` reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ccl/errors.h"
#include "schedule/collective.h"

namespace trellis::ccl {

// What ended a communicator on a rank.
enum class FailureKind : std::uint8_t {
  none,
  lost,       // a rank was lost
  mismatch,   // calls did not match
  aborted,    // a rank aborted
  elsewhere,  // failure of another communicator that was used together with this one
  own,        // an error of this rank alone
};
std::string_view name(FailureKind);

enum class RankStatus : std::uint8_t {
  alive,
  stopped,  // by a signal
  silent,   // it has not answered for long, and nothing more is known
  ended,    // its process has ended
  left,     // it has closed the communicator
};
std::string_view name(RankStatus);

// One operation, or one attempt at a split or shrink.
struct DumpedEntry {
  std::uint64_t operation = 0;  // a collective's number, equal on all ranks; of other entries: the last collective's
  bool points = false;          // it consists of sends and receives
  std::string division = {};    // "split", "shrink"; empty: an operation
  bool under_way = false;
  std::string call = {};  // "all_reduce of 1024 f32, sum"
  std::int64_t began_ns = 0;

  bool collective() const { return operation != 0 && !points && division.empty(); }
};

// Another rank, as seen by the rank that wrote the dump.
struct PeerSnapshot {
  DumpedEntry last = {};
  Rank waits_for = -1;
  std::int64_t process = 0;  // process id on the host
  RankStatus standing = RankStatus::alive;
};

// A message that an operation waits for.
struct PendingMessage {
  Rank peer = 0;
  bool receives = false;  // from the peer
  std::uint64_t bytes = 0;
};

struct RankDump {
  Rank rank = 0;
  Rank ranks = 1;
  std::string communicator = {};      // its identity; empty: it was never created, or not recorded
  std::string parent = {};            // the one that it was split or shrunk from; empty: none
  std::vector<Rank> in_parent = {};   // its ranks' numbers in the parent
  std::int64_t process = 0;           // process id on the host; 0: not recorded
  std::string process_identity = {};  // unique to this process; empty: not recorded
  std::string job_identity = {};      // derived from the launch's secret; empty: there was none, or not recorded
  std::int64_t moment_ns = 0;         // the described moment, since 1970; 0: not recorded
  FailureKind trouble = FailureKind::none;
  Rank blamed = -1;                     // the rank that was lost, made a different call, or aborted
  std::string error = {};               // the message that the program got
  std::string signal = {};              // that told the process to end before any failure: "TERM"
  std::vector<std::string> later = {};  // failures that followed
  std::vector<Rank> absent = {};        // the ranks that had not come when it could not be created; empty: not known
  Rank waits_for = -1;
  std::int32_t step = -1;
  std::vector<PendingMessage> pending = {};
  std::vector<PeerSnapshot> seen = {};    // by rank, with itself; empty: not recorded
  std::vector<DumpedEntry> entries = {};  // the last ones, in order

  bool made() const { return error.empty() || !communicator.empty(); }
};

// "all_reduce of 1024 f32, sum"; `points`: number of sends and receives, for send_recv; 0: not recorded. It is the same
// for calls that fit together: of all_to_all_v, whose ranks may have different counts, it is "all_to_all_v of f32".
std::string call_text(schedule::Collective, std::uint64_t count, std::string_view type, std::string_view op, Rank root,
                      std::uint64_t points);

// Reads the output of FlightRecorder::dump(). Throws invalid_argument that says what is wrong.
RankDump rank_dump_in(std::string_view json);

}  // namespace trellis::ccl
