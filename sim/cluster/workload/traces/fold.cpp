// Folds traces while they are read. A rank's file is compared with those of the known kinds of traces, message by
// message. Only what is its own is kept: its groups, and the other ends of its messages.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "sim/cluster/workload/traces/chakra_frames.h"
#include "sim/cluster/workload/traces/merge.h"

namespace trellis::sim {
namespace {

using Type = ChakraNode::Type;

constexpr std::size_t most_kinds = 256;  // each file is compared with one kind after the other
constexpr std::uint32_t unknown = static_cast<std::uint32_t>(-1);

bool is_message(const ChakraNode& n) { return n.type == Type::send || n.type == Type::receive; }

// A rank's own groups and peers, in the order in which they first appear in its trace.
struct OwnNames {
  std::uint32_t kind = 0;
  std::vector<std::uint32_t> groups;
  std::vector<Rank> peers;
};

// A rank's file that was read.
struct SeenTrace {
  std::string bytes;
  std::vector<ChakraFrame> frames;
  std::vector<std::uint32_t> groups;  // the rank's own

  std::string_view frame(std::size_t i) const { return cut(bytes, frames[i]); }
  static std::string_view cut(std::string_view bytes, ChakraFrame f) { return bytes.substr(f.begin, f.end - f.begin); }
};

// Traces that differ in no more than what their groups and peers are called.
struct TraceKind {
  SeenTrace first, last;  // of the kind's ranks so far; the last one is often in the same groups as the next
  std::vector<ChakraNode> nodes;
  std::vector<std::uint32_t> slots;  // by node: the index of its group or peer in OwnNames; unknown: it has none
};

bool alike_but_for_names(const ChakraNode& a, const ChakraNode& b) {
  return a.id == b.id && a.name == b.name && a.type == b.type && a.after == b.after && a.micros == b.micros &&
         a.on_host == b.on_host && a.comm_type == b.comm_type && a.comm_size == b.comm_size && a.tag == b.tag &&
         a.root == b.root && a.operations == b.operations && a.tensor_bytes == b.tensor_bytes &&
         a.group.empty() == b.group.empty();
}

class TraceFolding {
 public:
  TraceFolding(std::span<const std::string> names, const std::function<std::string(std::size_t)>& bytes)
      : names_(names), bytes_(bytes) {}

  // Returns false if the traces cannot be folded, or too few would be.
  bool run() {
    for (std::size_t r = 0; r < names_.size(); ++r)
      if (!add(static_cast<Rank>(r))) return false;
    return kinds_.size() < names_.size() && refine() && find_meetings();
  }

  std::vector<ChakraRankClass> actors() {
    std::vector<ChakraRankClass> all;
    for (const std::vector<Rank>& ranks : members_) {
      const TraceKind& kind = kinds_[own_[at(ranks.front())].kind];
      all.push_back({.ranks = ranks, .nodes = kind.nodes});
      for (std::uint32_t i = 0; i < kind.nodes.size(); ++i) {
        const std::uint32_t meeting = meeting_of(ranks.front(), kind, i);
        all.back().meetings.push_back(meeting);
        // The collectives of one communicator have a stream of their own, whatever each rank's group is called.
        ChakraNode& node = all.back().nodes[i];
        if (node.type == Type::collective && !node.group.empty()) node.group = std::to_string(meeting);
      }
    }
    return all;
  }
  std::vector<ChakraCommunicator> meetings() { return std::move(meetings_); }

 private:
  static std::size_t at(Rank r) { return static_cast<std::size_t>(r); }

  bool add(Rank r) {
    SeenTrace seen{.bytes = bytes_(at(r))};
    const ChakraFile file{names_[at(r)], seen.bytes};
    find_frames(file, seen.frames);
    for (std::uint32_t k = 0; k < kinds_.size(); ++k)
      if (OwnNames own{.kind = k}; is_of(kinds_[k], r, file, seen, own)) {
        seen.groups = own.groups;
        kinds_[k].last = std::move(seen);
        own_.push_back(std::move(own));
        return true;
      }
    if (kinds_.size() == most_kinds || 2 * kinds_.size() > names_.size()) return false;
    TraceKind kind{.nodes = read_chakra_nodes(file)};
    std::map<std::pair<bool, std::string>, std::uint32_t> slots;
    std::uint32_t counts[2] = {0, 0};
    for (const ChakraNode& n : kind.nodes) {
      kind.slots.push_back(unknown);
      if (!is_message(n) && (n.type != Type::collective || n.group.empty())) continue;
      const auto [found, fresh] = slots.try_emplace(
          {is_message(n), is_message(n) ? std::to_string(n.type == Type::send ? n.target : n.source) : n.group},
          counts[is_message(n)]);
      counts[is_message(n)] += fresh;
      kind.slots.back() = found->second;
    }
    OwnNames own{.kind = static_cast<std::uint32_t>(kinds_.size())};
    for (std::size_t i = 0; i < kind.nodes.size(); ++i)
      if (kind.slots[i] != unknown && !name(r, kind.nodes[i], kind.slots[i], own)) return false;
    if (!differ(own.groups) || !differ(own.peers)) return false;
    seen.groups = own.groups;
    kind.first = std::move(seen);
    kinds_.push_back(std::move(kind));
    own_.push_back(std::move(own));
    return true;
  }

  bool is_of(const TraceKind& kind, Rank r, const ChakraFile& file, const SeenTrace& seen, OwnNames& own) {
    if (seen.frames.size() != kind.first.frames.size() || seen.frame(0) != kind.first.frame(0)) return false;
    for (std::size_t i = 1; i < seen.frames.size(); ++i) {
      const std::string_view frame = seen.frame(i);
      const std::uint32_t slot = kind.slots[i - 1];
      const bool same = frame == kind.first.frame(i);
      if (slot == unknown && !same) return false;
      if (slot == unknown) continue;
      if (kind.nodes[i - 1].type == Type::collective) {
        const SeenTrace* like = same ? &kind.first : nullptr;
        if (!same && !kind.last.frames.empty() && frame == kind.last.frame(i)) like = &kind.last;
        if (like != nullptr && !note(own.groups, slot, like->groups[slot])) return false;
        if (like != nullptr) continue;
      }
      const ChakraNode node = read_node(file, seen.frames[i]);
      if (!alike_but_for_names(kind.nodes[i - 1], node) || !name(r, node, slot, own)) return false;
    }
    return differ(own.groups) && differ(own.peers);
  }

  template <class T>
  static bool differ(std::vector<T> all) {
    std::ranges::sort(all);
    return std::ranges::adjacent_find(all) == all.end();
  }

  template <class T>
  static bool note(std::vector<T>& all, std::uint32_t slot, T value) {
    if (slot == all.size()) all.push_back(value);
    return slot < all.size() && all[slot] == value;
  }

  // Notes the group or the peer of a rank's node; false if another one was noted in that slot.
  bool name(Rank r, const ChakraNode& n, std::uint32_t slot, OwnNames& own) {
    if (!is_message(n)) {
      auto found = groups_.find(n.group);
      if (found == groups_.end()) found = groups_.emplace(n.group, static_cast<std::uint32_t>(groups_.size())).first;
      return note(own.groups, slot, found->second);
    }
    const std::int64_t self = n.type == Type::send ? n.source : n.target,
                       peer = n.type == Type::send ? n.target : n.source;
    if ((self >= 0 && self != r) || peer == r || peer < 0 || peer >= std::ssize(names_)) return false;
    return note(own.peers, slot, static_cast<Rank>(peer));
  }

  // Splits kinds of ranks until the ranks of one kind have groups and peers of like kinds (colour refinement).
  bool refine() {
    group_ranks_.resize(groups_.size());
    for (std::size_t r = 0; r < own_.size(); ++r) {
      colours_.push_back(own_[r].kind);
      for (std::uint32_t slot = 0; slot < own_[r].groups.size(); ++slot)
        group_ranks_[own_[r].groups[slot]].emplace_back(static_cast<Rank>(r), slot);
    }
    for (std::size_t before = 0, count = kinds_.size(); before != count; count = split()) before = count;
    for (std::size_t r = 0; r < colours_.size(); ++r) {
      if (colours_[r] == members_.size()) members_.emplace_back();
      members_[colours_[r]].push_back(static_cast<Rank>(r));
    }
    return 2 * members_.size() <= own_.size();
  }

  // Splits colours once. Returns how many there are now; they are numbered by their lowest ranks.
  std::size_t split() {
    std::map<std::vector<std::uint32_t>, std::uint32_t> like, signs;
    like_.clear();
    for (const auto& ranks : group_ranks_) {
      std::vector<std::uint32_t> sign;
      for (const auto& [r, slot] : ranks) sign.push_back(colours_[at(r)]), sign.push_back(slot);
      like_.push_back(like.try_emplace(std::move(sign), static_cast<std::uint32_t>(like.size())).first->second);
    }
    std::vector<std::uint32_t> next;
    for (std::size_t r = 0; r < own_.size(); ++r) {
      std::vector<std::uint32_t> sign{colours_[r]};
      for (const std::uint32_t g : own_[r].groups) sign.push_back(like_[g]);
      for (const Rank peer : own_[r].peers)
        sign.push_back(colours_[at(peer)]), sign.push_back(slot_of(peer, static_cast<Rank>(r)));
      next.push_back(signs.try_emplace(std::move(sign), static_cast<std::uint32_t>(signs.size())).first->second);
    }
    colours_ = std::move(next);
    return signs.size();
  }

  // Which of the rank's peers the other one is; unknown: none.
  std::uint32_t slot_of(Rank r, Rank other) const {
    const auto& peers = own_[at(r)].peers;
    const auto found = std::ranges::find(peers, other);
    return found == peers.end() ? unknown : static_cast<std::uint32_t>(found - peers.begin());
  }

  bool find_meetings() {
    meetings_.push_back({.actors = members_.size()});
    like_meetings_.assign(group_ranks_.size(), unknown);
    for (std::uint32_t g = 0; g < group_ranks_.size(); ++g) {
      if (group_ranks_[g].empty()) continue;  // no rank is in it
      auto& meeting = like_meetings_[like_[g]];
      if (meeting == unknown) {
        meeting = static_cast<std::uint32_t>(meetings_.size());
        std::set<std::uint32_t> colours;
        for (const auto& [r, slot] : group_ranks_[g]) colours.insert(colours_[at(r)]);
        meetings_.push_back({.actors = colours.size()});
      }
      auto& ranks = meetings_[meeting].groups.emplace_back();
      for (const auto& [r, slot] : group_ranks_[g]) ranks.push_back(r);
    }
    for (const std::vector<Rank>& ranks : members_)
      for (std::uint32_t slot = 0; slot < own_[at(ranks.front())].peers.size(); ++slot) {
        messages_[{colours_[at(ranks.front())], slot}] = static_cast<std::uint32_t>(meetings_.size());
        auto& groups = meetings_.emplace_back().groups;
        for (Rank r : ranks) groups.push_back({r, own_[at(r)].peers[slot]});
      }
    for (ChakraCommunicator& m : meetings_) {
      std::vector<Rank> all;
      for (const auto& group : m.groups) all.insert(all.end(), group.begin(), group.end());
      if (!differ(all)) return false;
      if (m.actors > 0 && all.size() == own_.size() && m.groups.size() == 1) m.groups.clear();
    }
    return true;
  }

  std::uint32_t meeting_of(Rank r, const TraceKind& kind, std::uint32_t node) const {
    const ChakraNode& n = kind.nodes[node];
    if (!is_message(n) && n.type != Type::collective) return ChakraRankClass::no_meeting;
    if (!is_message(n)) return n.group.empty() ? 0 : like_meetings_[like_[own_[at(r)].groups[kind.slots[node]]]];
    const Rank peer = own_[at(r)].peers[kind.slots[node]];
    if (n.type == Type::send) return messages_.at({colours_[at(r)], kind.slots[node]});
    const auto sends = messages_.find({colours_[at(peer)], slot_of(peer, r)});
    if (sends == messages_.end()) throw std::invalid_argument("nobody sends it");
    return sends->second;
  }

  std::span<const std::string> names_;
  const std::function<std::string(std::size_t)>& bytes_;
  std::vector<TraceKind> kinds_;
  std::vector<OwnNames> own_;  // by rank
  std::map<std::string, std::uint32_t, std::less<>> groups_;
  std::vector<std::vector<std::pair<Rank, std::uint32_t>>> group_ranks_;  // by group: ranks, with their OwnNames slots
  std::vector<std::uint32_t> colours_, like_;  // by rank; by group, like groups sharing a number
  std::vector<std::vector<Rank>> members_;     // by colour
  std::vector<ChakraCommunicator> meetings_;
  std::vector<std::uint32_t> like_meetings_;                                   // by the numbers in like_
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> messages_;  // by the sender's colour and slot
};

}  // namespace

std::optional<ExecutionGraph> read_alike_chakra(std::string_view name, std::span<const std::string> names,
                                                const std::function<std::string(std::size_t)>& bytes) try {
  if (names.size() < 2) return {};
  TraceFolding folding(names, bytes);
  if (!folding.run()) return {};
  std::vector<ChakraRankClass> actors = folding.actors();
  std::vector<ChakraFile> files;
  for (const std::string& each : names) files.push_back({each, {}});
  return merged_traces(name, files, std::move(actors), folding.meetings());
} catch (const std::invalid_argument&) {
  return {};  // read_chakra reports the fault
}

}  // namespace trellis::sim
