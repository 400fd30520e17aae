// An Algorithm is a function from a Request to moves, known by name because its file registers it.
#pragma once
#include <map>

#include "schedule/builder.h"
#include "schedule/symmetry.h"

namespace trellis::schedule {

// What an algorithm is asked for. `dims` is the machine's shape, innermost first: {4, 4, 4} is a torus of 64; {8, 3}
// are three hosts of eight ranks.
struct Request {
  Collective collective = Collective::all_reduce;
  std::vector<Rank> dims = {1};
  Rank root = 0;
  Rank peer = 0;                 // the receiver of send_recv
  std::vector<Pair> pairs = {};  // permute
  bool in_place = false;
  std::int32_t channels = 1;             // parallel lanes, each carrying its share of every block
  std::int32_t segments = 1;             // parts that each lane's share passes through in turn, as a pipeline
  std::vector<std::string> levels = {};  // hierarchical: the algorithm of each dimension, innermost first; split: parts
  std::vector<std::int32_t> order =
      {};  // the dimensions as the algorithm is to see them, innermost first; empty: as they are

  Rank ranks() const;        // the product of dims
  Request in_order() const;  // what the algorithm is asked for: dims and ranks by their new names, and no order
  std::int64_t shares() const { return std::int64_t{channels} * segments; }  // of a block: a segment of a lane each
};

struct Algorithm {
  std::string name;
  std::string summary;     // one line
  std::string constraint;  // the rank counts it can serve, in words
  std::vector<Collective> serves;
  // Why this request can't be served, in words that name the value; empty when it can. Sees only requests for a
  // collective that is served and whose values are sane.
  std::string (*refuses)(const Request&) = nullptr;
  std::int64_t (*pieces)(const Request&) = nullptr;  // chunks that a block must be cut into; null: one
  void (*build)(const Request&, Builder&) = nullptr;
  // Keeps chunks of different blocks in one place of scratch by turns: where blocks are shares of a buffer that need
  // not divide evenly, as within another algorithm's all_reduce, it needs them equally large.
  bool mixes_blocks = false;
  bool lanes_are_runs = false;                     // of all_reduce: what goes through a channel lies together
  bool has_levels = false;                         // takes Request::levels
  bool in_a_row = false;                           // knows ranks by their numbers alone: of any dims it makes the same
  bool (*even)(const Request&) = nullptr;          // whether all chunks must be equally large; null: no
  Symmetry (*symmetry)(const Request&) = nullptr;  // null: every rank is of its own class
};

// Defining one of these at namespace scope makes the algorithm known to every tool and test.
struct Registered {
  explicit Registered(Algorithm);
};

const std::map<std::string, Algorithm, std::less<>>& algorithms();
const Algorithm& algorithm_named(std::string_view);  // throws invalid_argument, naming the known ones

void check(const Request&);                                    // throws invalid_argument with the value at fault
std::string refusal(const Algorithm&, const Request&);         // empty when it serves the request
Task conditions(const Request&, std::int32_t pieces);          // of the collective, for blocks so cut
Task task_of(const Algorithm&, const Request&);                // the conditions that the schedule will meet
Schedule make(const Algorithm&, const Request&);               // every rank's program
Program make_program(const Algorithm&, const Request&, Rank);  // one rank's, without building the others'
bool watch_program(const Algorithm&, const Request&, Rank, const Watch&);  // likewise, step by step; false: not all
void build(const Algorithm&, const Request&, Builder&);                    // as the request's order has it
Symmetry symmetry_of(const Algorithm&, const Request&);

Schedule make(std::string_view algorithm, const Request&);

}  // namespace trellis::schedule
