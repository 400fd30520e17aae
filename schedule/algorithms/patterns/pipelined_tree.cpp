#include "schedule/algorithms/patterns/pipelined_tree.h"

namespace trellis::schedule {
namespace {

// The transfers of a tree by depth, one pipeline wave after another.
class TreeWaves {
 public:
  TreeWaves(const PipelinedTree& tree, const Builder& b, bool up, bool down)
      : tree_(tree), me_(b.wanted_rank()), up_(up), down_(down), down_after_(up && down ? tree.depths() : 0) {
    for (Rank r = 0; b.everyone() && r < tree.ranks; ++r) depths_.push_back(tree.depth(r));
    if (me_ >= 0) own_depth_ = tree.depth(me_);
  }
  int count() const { return tree_.segments + tree_.depths() - 1 + down_after_; }

  void move(Builder& b, int wave) const {
    if (me_ >= 0 && !moves_in(wave)) return b.pass_rounds((up_ ? 2 : 0) + (down_ ? 1 : 0));
    if (up_) sum_up(b, wave);
    if (down_) pass_down(b, wave);
  }

 private:
  int depth(Rank r) const { return depths_.empty() ? tree_.depth(r) : depths_[static_cast<std::size_t>(r)]; }
  std::int64_t chunk_up(int wave, int depth) const {
    return depth < 0 ? -1 : tree_.chunk(wave, tree_.depths() - 1 - depth);
  }
  std::int64_t chunk_down(int wave, int depth) const { return tree_.chunk(wave, down_after_ + depth); }

  // Whether the rank that is built sends or receives in this wave, with its parent or with its children.
  bool moves_in(int wave) const {
    const int own = own_depth_, below = own + 1;
    const auto either = [](std::int64_t a, std::int64_t b) { return a >= 0 || b >= 0; };
    return (up_ && either(chunk_up(wave, own), chunk_up(wave, below))) ||
           (down_ && either(chunk_down(wave, own), chunk_down(wave, below)));
  }

  // One wave moves each segment by one link. A second child's data arrives in scratch and is added afterwards, so that
  // neither child waits for the other.
  void sum_up(Builder& b, int wave) const {
    for (Rank r : b.senders([&](Rank me) { return tree_.children(me); })) {
      const std::int64_t c = chunk_up(wave, depth(r));
      if (c < 0) continue;
      const Rank parent = tree_.parent(r);
      if (r == tree_.children(parent).front())
        b.reduce(data(r, c), data(parent, c));
      else
        b.copy(data(r, c), tmp(parent, c, 1, c));
    }
    for (Rank r : b.senders())
      if (const std::int64_t c = chunk_up(wave, depth(r) + 1); c >= 0 && tree_.children(r).size() == 2)
        b.reduce(tmp(r, c, 1, c), data(r, c));
  }

  void pass_down(Builder& b, int wave) const {
    for (Rank r : b.senders([&](Rank me) { return tree_.parent(me); }))
      if (const std::int64_t c = chunk_down(wave, depth(r) + 1); c >= 0)
        for (Rank child : tree_.children(r)) b.copy(data(r, c), data(child, c));
  }

  const PipelinedTree& tree_;
  const Rank me_;  // the only rank to build, if any
  int own_depth_ = -1;
  const bool up_, down_;
  const int down_after_;     // in waves
  std::vector<int> depths_;  // of all ranks, if all are built
};

}  // namespace

void run_trees(Collective collective, Builder& b, const std::vector<PipelinedTree>& trees) {
  if (b.ranks() == 1) return;
  std::vector<TreeWaves> waves;
  for (const PipelinedTree& tree : trees)
    waves.emplace_back(tree, b, reduces(collective), collective != Collective::reduce);
  for (int wave = 0; wave < waves.front().count(); ++wave)
    for (std::size_t i = 0; i < trees.size(); ++i) {
      Builder on = b.on_channel(static_cast<int>(i));
      waves[i].move(on, wave);
    }
}

}  // namespace trellis::schedule
