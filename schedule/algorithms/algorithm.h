// The Algorithm interface: a function from a Request to moves, which its source file registers by name.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/builder/builder.h"
#include "schedule/schedule.h"
#include "schedule/symmetry.h"

namespace trellis::schedule {

// What an algorithm is asked for. `dims` is the machine's shape, innermost dimension first: {4, 4, 4} is a torus of 64
// ranks; {8, 3} is three hosts of eight ranks.
struct Request {
  CollectiveOperation operation;
  std::vector<Rank> dims = {1};
  std::int32_t channels = 1;             // parallel lanes; each carries its share of every block
  std::int32_t segments = 1;             // pieces of a lane's share, sent one after another as a pipeline
  std::vector<std::string> levels = {};  // hierarchical: the algorithm per level, innermost first; split: parts
  std::vector<std::int32_t> order = {};  // the dimensions as the algorithm sees them, innermost first; empty: unchanged
  std::vector<Rank> numbering = {};      // numbering[i]: the rank that the algorithm sees as i; empty: unchanged

  Rank ranks() const;  // product of dims
  // The request as the algorithm sees it: dims and ranks permuted, `order` and `numbering` empty.
  Request in_order() const;
  std::int64_t shares() const { return std::int64_t{channels} * segments; }  // per block
};

// The shape that suits an algorithm when the caller names none.
enum class UsualShape : std::uint8_t {
  row,      // all ranks in one row
  chips,    // the ranks of a chip, and the chips in a row
  machine,  // the machine's own dimensions
  hosts,    // the ranks of a host, and the hosts in a row
};

// What an algorithm uses a request's dimensions for.
enum class UseOfDims : std::uint8_t {
  shape,  // they decide who sends what to whom
  order,  // they only decide in what order a rank sends, the same for all ranks of a torus
  none,   // nothing: the schedule is the same for all dims
};

struct Algorithm {
  std::string name;
  std::string summary;     // one line
  std::string constraint;  // supported rank counts, in words
  std::vector<Collective> serves;
  // Why the request can't be served, in words that contain the value; empty if it can. Called only for served
  // collectives and valid values.
  std::string (*refuses)(const Request&) = nullptr;
  std::int64_t (*pieces)(const Request&) = nullptr;  // chunks that a block must be cut into; null: one
  void (*build)(const Request&, Builder&) = nullptr;
  // Reuses the same scratch for chunks of different blocks. If blocks are shares of a buffer that may not divide
  // evenly, as inside another algorithm's all_reduce, the blocks must be made equally large.
  bool mixes_blocks = false;
  bool lanes_are_runs = false;  // all_reduce: each channel's data is contiguous
  bool has_levels = false;      // uses Request::levels
  UseOfDims dims = UseOfDims::shape;
  bool (*even)(const Request&) = nullptr;  // whether all chunks must be equally large; null: no
  // null: each rank is its own class. Where joins_blocks is true, the symmetry holds only while blocks lie in rank
  // order.
  Symmetry (*symmetry)(const Request&) = nullptr;
  // Whether a message carries several ranks' blocks. Where these do not lie one after another, it splits into more
  // messages on some ranks than on others. null: no.
  bool (*joins_blocks)(const Request&) = nullptr;
  UsualShape usual_shape = UsualShape::row;
  // If algorithms make the same schedule, the tuner keeps the one with the largest number, as the best known.
  int renown = 0;
};

// For the `refuses` and `symmetry` of several algorithms.
std::string refuses_shares(const Request&, std::string_view reason);  // refuses more than one share of a block
Symmetry rotated(const Request&);                                     // rotations of all ranks; none with a root
Symmetry flipped(const Request&);                                     // XORs; none with a root, or no power of two

// An object of this type at namespace scope registers the algorithm for all tools and tests.
struct RegisteredAlgorithm {
  explicit RegisteredAlgorithm(Algorithm);
};

const std::map<std::string, Algorithm, std::less<>>& algorithms();
const Algorithm& algorithm_named(std::string_view);  // throws invalid_argument that lists the known names

void check(const Request&);                             // throws invalid_argument that contains the bad value
std::string refusal(const Algorithm&, const Request&);  // empty if it serves the request
Task conditions(const Request&, std::int32_t pieces);   // the collective's conditions, with blocks cut into `pieces`
Task task_of(const Algorithm&, const Request&);         // the conditions that the schedule will meet
Schedule make(const Algorithm&, const Request&);        // every rank's program
// Throws ScheduleTooLarge if each of three sampled ranks has more than its share of `most_steps`. Stores no schedule.
void expect_writable(const Algorithm&, const Request&, std::int64_t most_steps);
Program make_program(const Algorithm&, const Request&, Rank);  // one rank's, without building the others
// The same, step by step: calls `seen` with the program after each step. Stops and returns false when it returns false.
bool watch_program(const Algorithm&, const Request&, Rank, const std::function<bool(const Program&)>& seen);
void build(const Algorithm&, const Request&, Builder&);  // applies Request::order and numbering
bool joins_blocks(const Algorithm&, const Request&);     // false if the collective has no blocks
Symmetry symmetry_of(const Algorithm&, const Request&);

Schedule make(std::string_view algorithm, const Request&);

}  // namespace trellis::schedule
