#include "sim/core/backend/list_scheduler.h"

#include <algorithm>
#include <array>
#include <queue>
#include <stdexcept>
#include <utility>

#include "sim/core/backend/cost_estimator.h"
#include "sim/core/program/instruction_kind.h"
#include "text/refuse.h"

namespace trellis::sim::core {
namespace {

constexpr std::array<Engine, engine_count> all_engines = {Engine::tensor, Engine::vector, Engine::scalar,
                                                          Engine::gpsimd, Engine::sync};

struct Candidate {
  Time ready;
  Time rank;  // the lowest is issued first
  std::uint32_t instruction;
};
struct LaterReady {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return std::tie(a.ready, a.instruction) > std::tie(b.ready, b.instruction);
  }
};
struct LowerRank {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return std::tie(a.rank, a.instruction) > std::tie(b.rank, b.instruction);
  }
};

using Oldest = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;

// A core's engine: when the estimate says that it is free, and the instructions queued on it.
struct Server {
  Time free = 0;
  Time backlog = 0;  // the intervals of the instructions in its queue
  std::priority_queue<Candidate, std::vector<Candidate>, LaterReady> waiting;
  std::priority_queue<Candidate, std::vector<Candidate>, LowerRank> ready;

  bool idle() const { return waiting.empty() && ready.empty(); }
  Time next() const { return ready.empty() ? std::max(free, waiting.top().ready) : free; }
};

class ListScheduler {
 public:
  ListScheduler(UnscheduledProgram& draft, const DependencyGraph& graph, const TilePools& tiles,
                const std::vector<std::uint32_t>& slots, const ChipSpec& chip, const ListSchedulerOptions& options)
      : draft_(draft),
        graph_(graph),
        tiles_(tiles),
        slots_(slots),
        chip_(chip),
        options_(options),
        estimates_(draft, chip),
        count_(static_cast<std::uint32_t>(draft.program.instructions.size())),
        servers_(static_cast<std::size_t>(draft.program.cores * engine_count)),
        dma_free_(draft.program.cores, 0),
        ring_free_(static_cast<std::size_t>(draft.program.cores * chip.dma.rings), 0),
        live_(slots.size(), 0),
        psum_live_(draft.program.cores, 0),
        blocked_(slots.size()) {}

  std::vector<std::uint32_t> run() {
    prepare();
    admit();
    while (order_.size() < count_) {
      Server* server = soonest();
      if (server == nullptr) {
        force();
        continue;
      }
      const Time now = server->next();
      while (!server->waiting.empty() && server->waiting.top().ready <= now) {
        server->ready.push(server->waiting.top());
        server->waiting.pop();
      }
      const std::uint32_t at = server->ready.top().instruction;
      server->ready.pop();
      if (const std::int32_t full = full_group(at); full >= 0) {
        blocked_[static_cast<std::size_t>(full)].push(at);
        server->backlog -= chosen_[at].interval;
        continue;
      }
      start(at, *server, now);
    }
    return std::move(order_);
  }

 private:
  void prepare() {
    missing_.resize(count_);
    later_first_.assign(count_ + 1, 0);
    for (std::uint32_t at = 0; at < count_; ++at) {
      missing_[at] = graph_.first[at + 1] - graph_.first[at];
      for (std::uint32_t e = graph_.first[at]; e < graph_.first[at + 1]; ++e) ++later_first_[graph_.earlier[e] + 1];
    }
    for (std::uint32_t at = 0; at < count_; ++at) later_first_[at + 1] += later_first_[at];
    later_.resize(graph_.earlier.size());
    std::vector<std::uint32_t> next(later_first_.begin(), later_first_.end() - 1);
    for (std::uint32_t at = 0; at < count_; ++at)
      for (std::uint32_t e = graph_.first[at]; e < graph_.first[at + 1]; ++e) later_[next[graph_.earlier[e]]++] = at;
    ready_.assign(count_, 0);
    chosen_.resize(count_);
    server_.resize(count_);
    started_.assign(count_, false);
    left_.assign(draft_.program.buffers.size(), 0);
    begun_.assign(draft_.program.buffers.size(), false);
    for (std::uint32_t at = 0; at < count_; ++at) each_tile(at, [&](std::size_t b, std::size_t) { ++left_[b]; });
    if (options_.critical_path) find_heights();
    if (!by_region()) return;
    products_left_.assign(draft_.regions.back() + 1, 0);
    for (std::uint32_t at = 0; at < count_; ++at)
      if (for_tensor(at)) ++products_left_[draft_.regions[at]];
    next_region();
  }

  bool by_region() const { return options_.regions && !draft_.regions.empty(); }
  bool for_tensor(std::uint32_t at) const { return draft_.engines[at] == set_of(Engine::tensor); }

  // Goes on to the next region in which Tensor has instructions left, and offers those that waited for it.
  void next_region() {
    while (region_ < products_left_.size() && products_left_[region_] == 0) ++region_;
    std::vector<std::uint32_t> still;
    for (const std::uint32_t at : std::exchange(early_, {})) {
      if (draft_.regions[at] <= region_)
        offer(at);
      else
        still.push_back(at);
    }
    early_ = std::move(still);
  }

  // Finds for each instruction the longest path from its start to the end of the program.
  void find_heights() {
    height_.assign(count_, 0);
    for (std::uint32_t at = count_; at-- > 0;) {
      Time behind = 0;
      for (std::uint32_t e = later_first_[at]; e < later_first_[at + 1]; ++e)
        behind = std::max(behind, height_[later_[e]]);
      const CostEstimate cost = estimates_.of(at, first_engine(at));
      height_[at] = behind + cost.latency + cost.moving + chip_.semaphore_latency;
    }
  }

  Engine first_engine(std::uint32_t at) const {
    const Engine asked = draft_.program.instructions[at].engine;
    if (estimates_.may_run(at, asked)) return asked;
    for (const Engine e : all_engines)
      if (estimates_.may_run(at, e)) return e;
    text::refuse("{} has no {} on any engine that may run it", chip_.name, draft_.program.instructions[at].kind->name);
  }

  void admit() {
    while (admitted_ < std::min(count_, oldest_ + options_.window)) admit_next();
  }

  void admit_next() {
    const std::uint32_t at = admitted_++;
    if (missing_[at] == 0) offer(at);
  }

  Server& server_of(std::uint32_t at, Engine engine) {
    return servers_[static_cast<std::size_t>(draft_.program.instructions[at].core * engine_count) +
                    static_cast<std::size_t>(engine)];
  }

  // Queues an instruction on the engine on which it would end first, behind what is already queued there.
  void offer(std::uint32_t at) {
    if (by_region() && for_tensor(at) && draft_.regions[at] > region_) return early_.push_back(at);
    Instruction& i = draft_.program.instructions[at];
    Engine best = first_engine(at);
    CostEstimate cost = estimates_.of(at, best);  // best is chosen anew each time it is offered: engines may be busier
    const auto end_on = [&](Engine e, const CostEstimate& c) {
      const Server& s = server_of(at, e);
      return std::max(s.free + s.backlog, ready_[at]) + c.interval;
    };
    const EngineSet others = draft_.engines[at] & static_cast<EngineSet>(~set_of(best));
    if (!i.kind->dma && others != 0)
      for (const Engine e : all_engines) {
        if (e == best || !estimates_.may_run(at, e)) continue;
        const CostEstimate other = estimates_.of(at, e);
        if (end_on(e, other) >= end_on(best, cost)) continue;
        best = e;
        cost = other;
      }
    i.engine = best;
    if (i.kind->dma) i.queue = ring_for(at, best);
    chosen_[at] = cost;
    server_[at] = static_cast<std::size_t>(i.core * engine_count) + static_cast<std::size_t>(best);
    Server& s = servers_[server_[at]];
    s.backlog += cost.interval;
    const Time rank = options_.critical_path ? -height_[at] : 0;
    s.waiting.push({ready_[at], rank, at});
  }

  std::int16_t ring_for(std::uint32_t at, Engine trigger) const {
    return draft_.queues[at] >= 0 ? draft_.queues[at] : static_cast<std::int16_t>(trigger);
  }

  Server* soonest() {
    Server* best = nullptr;
    for (Server& s : servers_)
      if (!s.idle() && (best == nullptr || s.next() < best->next())) best = &s;
    return best;
  }

  template <class Visit>
  void each_tile(std::uint32_t at, Visit visit) const {
    const Instruction& i = draft_.program.instructions[at];
    for (std::uint32_t v = 0; v < i.views.count; ++v) {
      const auto b = static_cast<std::size_t>(draft_.program.views[i.views.first + v].buffer);
      if (const std::int32_t g = tiles_.of(b); g >= 0) visit(b, static_cast<std::size_t>(g));
    }
  }

  // Returns a tile group that keeps the instruction from starting: the instruction would begin another tile of it, but
  // no slot is left, or no room in PSUM, which cannot spill. -1: there is none.
  std::int32_t full_group(std::uint32_t at) const {
    std::int32_t full = -1;
    each_tile(at, [&](std::size_t b, std::size_t g) {
      if (begun_[b]) return;
      const std::int64_t psum = psum_bytes(b, g);
      const bool no_room =
          psum > 0 && psum_live_[tiles_.groups()[g].core] + psum > static_cast<std::int64_t>(chip_.memory.psum_bytes);
      if (no_room || live_[g] >= slots_[g]) full = static_cast<std::int32_t>(g);
    });
    return full;
  }

  // How many bytes of PSUM a tile takes; small tiles share banks. 0 in SBUF.
  std::int64_t psum_bytes(std::size_t buffer, std::size_t group) const {
    return tiles_.groups()[group].space == MemorySpace::psum ? psum_piece(draft_.program.buffers[buffer].bytes, chip_)
                                                             : 0;
  }

  // Makes progress when no instruction can start: the window grows by one instruction if none lacks room, or with
  // `fuse`; else the oldest one that lacks room starts nevertheless.
  void force() {
    Oldest* least = nullptr;
    for (Oldest& each : blocked_)
      if (!each.empty() && (least == nullptr || each.top() < least->top())) least = &each;
    if ((least == nullptr || options_.fuse) && admitted_ < count_) return admit_next();
    if (least == nullptr) throw std::invalid_argument("instructions depend on each other in a circle");
    const std::uint32_t at = least->top();
    least->pop();
    start(at, servers_[server_[at]], std::max(servers_[server_[at]].free, ready_[at]));
  }

  void start(std::uint32_t at, Server& server, Time now) {
    const Instruction& i = draft_.program.instructions[at];
    const CostEstimate& cost = chosen_[at];
    server.free = now + cost.interval;
    server.backlog = std::max<Time>(0, server.backlog - cost.interval);
    Time seen = now + std::max(cost.latency, cost.interval);
    if (i.kind->dma) seen = move(i, cost, server.free);
    seen += chip_.semaphore_latency;
    order_.push_back(at);
    started_[at] = true;
    freed_.clear();
    bool psum_freed = false;
    each_tile(at, [&](std::size_t b, std::size_t g) {
      const std::int64_t psum = psum_bytes(b, g);
      if (!begun_[b]) ++live_[g], psum_live_[tiles_.groups()[g].core] += psum;
      begun_[b] = true;
      if (--left_[b] != 0) return;
      --live_[g], psum_live_[tiles_.groups()[g].core] -= psum;
      psum_freed |= psum > 0;
      freed_.push_back(g);
    });
    for (std::size_t g = 0; psum_freed && g < blocked_.size(); ++g)
      if (tiles_.groups()[g].space == MemorySpace::psum && std::ranges::find(freed_, g) == freed_.end())
        freed_.push_back(g);
    for (std::uint32_t e = later_first_[at]; e < later_first_[at + 1]; ++e) {
      const std::uint32_t later = later_[e];
      ready_[later] = std::max(ready_[later], seen);
      if (--missing_[later] == 0 && later < admitted_) offer(later);
    }
    while (oldest_ < count_ && started_[oldest_]) ++oldest_;
    if (by_region() && for_tensor(at) && --products_left_[draft_.regions[at]] == 0) next_region();
    for (const std::size_t g : freed_) wake(g);
    admit();
  }

  // Offers the oldest instruction that lacked a slot of the group again.
  void wake(std::size_t group) {
    if (blocked_[group].empty()) return;
    const std::uint32_t at = blocked_[group].top();
    blocked_[group].pop();
    offer(at);
  }

  // Returns when a DMA that is triggered at `triggered` is done, and occupies its ring and the DMA engines.
  Time move(const Instruction& i, const CostEstimate& cost, Time triggered) {
    Time& ring = ring_free_[static_cast<std::size_t>(i.core * chip_.dma.rings + i.queue)];
    Time& engines = dma_free_[i.core];
    const Time begins = std::max(triggered + cost.latency, ring);
    const Time ends = std::max(begins, engines) + cost.moving;
    engines = ends;
    ring = (chip_.dma.prefetch ? begins : ends) + chip_.dma.generate + chip_.dma.interval;
    return ends + chip_.dma.stagger + chip_.dma.done;
  }

  UnscheduledProgram& draft_;
  const DependencyGraph& graph_;
  const TilePools& tiles_;
  const std::vector<std::uint32_t>& slots_;
  const ChipSpec& chip_;
  const ListSchedulerOptions options_;
  const CostEstimator estimates_;
  const std::uint32_t count_;
  std::vector<Server> servers_;
  std::vector<Time> dma_free_, ring_free_;
  std::vector<std::uint32_t> live_;      // tiles of each group
  std::vector<std::int64_t> psum_live_;  // bytes of PSUM, of each core
  std::vector<std::uint32_t> missing_, later_first_, later_;
  std::vector<Time> ready_, height_;
  std::vector<CostEstimate> chosen_;
  std::vector<std::size_t> server_;  // of each instruction: the engine it is queued on
  std::vector<bool> started_, begun_;
  std::vector<std::uint32_t> left_;  // touches of each buffer that are still to come
  std::vector<Oldest> blocked_;      // of each group: instructions that only lack a slot of it
  std::vector<std::size_t> freed_;
  std::vector<std::uint32_t> products_left_;  // of each region: Tensor's instructions that have not started
  std::uint32_t region_ = 0;                  // the region that Tensor is in
  std::vector<std::uint32_t> early_;          // Tensor's instructions that are ready, but in a later region
  std::vector<std::uint32_t> order_;
  std::uint32_t oldest_ = 0, admitted_ = 0;
};

}  // namespace

std::vector<std::uint32_t> list_schedule(UnscheduledProgram& draft, const DependencyGraph& graph,
                                         const TilePools& tiles, const std::vector<std::uint32_t>& slots,
                                         const ChipSpec& chip, const ListSchedulerOptions& options) {
  return ListScheduler(draft, graph, tiles, slots, chip, options).run();
}

}  // namespace trellis::sim::core
