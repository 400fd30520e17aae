#include "sim/run_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "sim/flow_network.h"
#include "sim/packet_network.h"

namespace trellis::sim {
namespace {

using Id = std::uint64_t;  // a move of a seat
constexpr Id id_of(std::uint32_t seat, std::uint32_t move) { return Id{seat} << 32 | move; }
constexpr std::uint32_t seat_in(Id id) { return static_cast<std::uint32_t>(id >> 32); }
constexpr std::uint32_t move_in(Id id) { return static_cast<std::uint32_t>(id); }

Time scaled(Time t, float slowness) {
  return slowness == 1.0F ? t : static_cast<Time>(static_cast<double>(t) * static_cast<double>(slowness));
}

// Uses of one resource are one.
void add_use(std::vector<Use>& uses, std::uint32_t resource, std::uint32_t weight) {
  for (Use& u : uses)
    if (u.resource == resource) {
      u.weight += weight;
      return;
    }
  uses.push_back({resource, weight});
}

}  // namespace

// The heart: what happens, instant by instant.
template <class Count>
class Loop {
 public:
  explicit Loop(Run::Engine& engine)
      : e_(engine), trace_(!engine.traces_.empty()), semaphore_(engine.overheads_.semaphore) {
    waits_.reserve(e_.moves_);
    for (const auto& row : e_.rows_)
      for (const Move& m : e_.program(e_.seats_[row.seats[0]]).moves)
        waits_.insert(waits_.end(), row.seats.size(), static_cast<Count>(m.waits));
  }

  Time run(const std::vector<Work>& chunk_work) {
    chunk_work_ = &chunk_work;
    open();
    std::vector<Run::Engine::Event> row;
    std::vector<Id> ended;
    Network& network = *e_.network_;
    while (true) {
      start_ready();
      network.settle();
      const Time next = std::min(queue_.next(), network.next());
      if (next == forever) break;
      if (next > e_.settings_.limit) return forever;
      now_ = next;
      ended.clear();
      network.advance(next, ended);
      for (Id id : ended) end(seat_in(id), move_in(id));
      while (queue_.next() == next) {
        queue_.pop(row);
        e_.events_ += std::ssize(row);
        for (const auto& event : row) happen(event);
      }
    }
    if (done_ < std::ssize(waits_))
      throw std::invalid_argument(
          fmt::format("{} of {} moves of the schedule can never start", std::ssize(waits_) - done_, waits_.size()));
    return now_;
  }

 private:
  using Kind = Run::Engine::Kind;

  void open() {
    for (std::uint32_t i = 0; i < e_.seats_.size(); ++i) {
      const auto& seat = e_.seats_[i];
      const Job& job = e_.jobs_[seat.job];
      const Overheads& o = e_.overheads_;
      const Time start = job.start + o.launch + (uneven(job.pattern->task().collective) ? o.counts : 0);
      e_.ended_[seat.job] = start;
      const auto& moves = e_.program(seat).moves;
      for (std::uint32_t m = 0; m < moves.size(); ++m)
        if (moves[m].waits == 0) queue_.push(start, {i, m, Kind::ready});
    }
  }

  void happen(const Run::Engine::Event& event) {
    const auto& seat = e_.seats_[event.seat];
    if (event.kind == Kind::begin) return begin(event.seat, event.move);
    if (event.kind == Kind::ready) {
      if (trace_) e_.traces_[e_.number(seat, event.move)].ready = now_;
      ready_.push_back(id_of(event.seat, event.move));
      return;
    }
    const Move& m = e_.program(seat).moves[event.move];
    const Id cause = e_.number(seat, event.move);
    if (event.kind == Kind::sent) return let_go(event.seat, m.step, cause);
    const bool also = event.kind == Kind::arrived_second;
    const auto& peer = e_.peers_[seat.first_peer + static_cast<std::uint32_t>(also ? m.second : m.peer)];
    let_go(peer.seat, also ? m.second_arrival : m.arrival, cause);
  }

  void start_ready() {
    if (e_.overheads_.message > 0) std::ranges::sort(ready_);
    for (std::size_t i = 0; i < ready_.size(); ++i) start(seat_in(ready_[i]), move_in(ready_[i]));
    ready_.clear();
  }

  // What precedes the bytes: a place in the line of the sender's collective cores, the handshake, the DMA's start.
  void start(std::uint32_t at, std::uint32_t number) {
    auto& seat = e_.seats_[at];
    const Move& m = e_.program(seat).moves[number];
    const Overheads& o = e_.overheads_;
    const bool bytes = !e_.needs_no_bytes(seat, m);
    Time before = m.adds && bytes ? o.reduce : 0;
    float slowness = seat.slowness;
    if (m.peer != no_peer) {
      before += o.handshake;
      slowness =
          std::max(slowness, e_.seats_[e_.peers_[seat.first_peer + static_cast<std::uint32_t>(m.peer)].seat].slowness);
    }
    if (bytes) before += o.dma_start;
    before = scaled(before, slowness);
    if (o.message > 0 && m.peer != no_peer) {
      seat.busy = std::max(seat.busy, now_) + scaled(o.message, slowness);
      before += seat.busy - now_;
    }
    if (before == 0) return begin(at, number);
    queue_.push(now_ + before, {at, number, Kind::begin});
  }

  void begin(std::uint32_t at, std::uint32_t number) {
    const auto& seat = e_.seats_[at];
    const Move& m = e_.program(seat).moves[number];
    if (trace_) e_.traces_[e_.number(seat, number)].begin = now_;
    const Work work = e_.needs_no_bytes(seat, m) ? 0 : (*chunk_work_)[seat.job] * m.chunks;
    if (m.peer != no_peer) ++e_.transfers_;
    uses_.clear();
    if (work > 0) e_.uses_of(seat, m, uses_);
    if (uses_.empty()) return end(at, number);
    e_.network_->start(uses_, work, id_of(at, number));
  }

  void end(std::uint32_t at, std::uint32_t number) {
    const auto& seat = e_.seats_[at];
    const Move& m = e_.program(seat).moves[number];
    ++done_;
    if (trace_) e_.traces_[e_.number(seat, number)].end = now_;
    if (semaphore_ == 0)
      let_go(at, m.step, e_.number(seat, number));
    else
      queue_.push(now_ + semaphore_, {at, number, Kind::sent});
    if (m.peer == no_peer) return;
    const auto* peers = e_.peers_.data() + seat.first_peer;
    queue_.push(now_ + peers[m.peer].latency + semaphore_, {at, number, Kind::arrived});
    if (m.second != no_peer)
      queue_.push(now_ + peers[m.second].latency + semaphore_, {at, number, Kind::arrived_second});
  }

  void let_go(std::uint32_t at, std::uint32_t step, Id cause) {
    const auto& seat = e_.seats_[at];
    const PatternClass& program = e_.program(seat);
    e_.ended_[seat.job] = std::max(e_.ended_[seat.job], now_);
    for (std::uint32_t i = program.begin[step]; i < program.begin[step + 1]; ++i) {
      const Follower& f = program.followers[i];
      const std::uint32_t target =
          f.peer == no_peer ? at : e_.peers_[seat.first_peer + static_cast<std::uint32_t>(f.peer)].seat;
      const std::uint64_t move = e_.number(e_.seats_[target], f.move);
      if (--waits_[move] != 0) continue;
      if (trace_) e_.traces_[move].cause = static_cast<std::int64_t>(cause), e_.traces_[move].ready = now_;
      ready_.push_back(id_of(target, f.move));
    }
  }

  Run::Engine& e_;
  const bool trace_;
  const Time semaphore_;
  const std::vector<Work>* chunk_work_ = nullptr;
  std::vector<Count> waits_;
  InstantQueue<Run::Engine::Event> queue_;
  std::vector<Id> ready_;
  std::vector<Use> uses_;
  Time now_ = 0;
  std::int64_t done_ = 0;
};

Run::Engine::Engine(const Machine& machine, std::vector<Job> jobs, RunSettings settings)
    : machine_(machine), jobs_(std::move(jobs)), settings_(std::move(settings)) {
  overheads_ = machine_.overheads(settings_.era);
  const bool whole = jobs_.size() == 1 && jobs_[0].members.empty() && jobs_[0].pattern->ranks() == machine_.ranks();
  if (settings_.fold && whole && machine_.spec().defects.empty()) {
    folding_ = std::make_unique<Folding>(machine_, shared_symmetry(jobs_[0].pattern->symmetry(), machine_.alike()));
    if (!folding_->folds()) folding_.reset();
  }
  if (!folding_) {
    capacities_.resize(machine_.resources());
    for (ResourceId r = 0; r < capacities_.size(); ++r) capacities_[r] = rate_of(machine_.rate(r));
  }
  for (std::uint32_t job = 0; job < jobs_.size(); ++job) {
    const auto first = static_cast<std::uint32_t>(seats_.size());
    add_seats(job);
    add_peers(job, first);
    const Pattern& pattern = *jobs_[job].pattern;
    const double chunk = jobs_[job].chunk_bytes;
    const auto chunks = static_cast<Work>(std::max<std::int64_t>(1, schedule::data_chunks(pattern.task())));
    chunk_work_.push_back(chunk > 0 ? static_cast<Work>(chunk) * work_of_byte
                                    : static_cast<Work>(jobs_[job].bytes) * work_of_byte / chunks);
  }
  for (const Seat& seat : seats_)
    for (ResourceId r : {machine_.hbm(seat.rank), machine_.dma(seat.rank)})
      if (r != no_resource) number(r);
  ended_.assign(jobs_.size(), 0);
  if (settings_.trace) traces_.resize(moves_);
  if (settings_.packets)
    network_ = std::make_unique<PacketNetwork>(capacities_, settings_.packet);
  else
    network_ = std::make_unique<FlowNetwork>(capacities_);
  capacities_ = {};
}

// The network's number of a resource.
std::uint32_t Run::Engine::number(ResourceId r) {
  if (!folding_) return r;
  const ResourceId one = folding_->representative(r);
  const auto [at, fresh] = folded_.try_emplace(one, static_cast<std::uint32_t>(capacities_.size()));
  if (fresh) capacities_.push_back(rate_of(machine_.rate(one)));
  return at->second;
}

void Run::Engine::add_seats(std::uint32_t job) {
  const Pattern& pattern = *jobs_[job].pattern;
  const auto& members = jobs_[job].members;
  const Rank limit = members.empty() ? pattern.ranks() : static_cast<Rank>(members.size());
  if (limit != pattern.ranks() || (members.empty() && limit > machine_.ranks()))
    throw std::invalid_argument(fmt::format("a schedule for {} ranks on {}: {} has {}", pattern.ranks(),
                                            members.empty() ? "all" : fmt::format("{} members", limit), machine_.name(),
                                            machine_.ranks()));
  const std::size_t first_row = rows_.size();
  rows_.resize(first_row + pattern.classes().size());
  std::vector<Rank> ranks;
  if (folding_) ranks = folding_->representatives();
  for (Rank i = 0; i < (folding_ ? static_cast<Rank>(ranks.size()) : limit); ++i) {
    const Rank r = folding_ ? ranks[i] : i;
    const Rank at = members.empty() ? r : members[r];
    if (at < 0 || at >= machine_.ranks())
      throw std::invalid_argument(fmt::format("rank {}: {} has 0 to {}", at, machine_.name(), machine_.ranks() - 1));
    seats_.push_back({.job = job,
                      .program = pattern.class_of(r),
                      .rank = at,
                      .slowness = static_cast<float>(machine_.slowness(at))});
    rows_[first_row + seats_.back().program].seats.push_back(static_cast<std::uint32_t>(seats_.size()) - 1);
  }
  for (std::size_t i = first_row; i < rows_.size(); ++i) {
    rows_[i].first_move = moves_;
    std::uint64_t index = 0;
    for (std::uint32_t seat : rows_[i].seats) {
      seats_[seat].first_move = moves_ + index++;
      seats_[seat].stride = static_cast<std::uint32_t>(rows_[i].seats.size());
    }
    moves_ += pattern.classes()[i - first_row].moves.size() * rows_[i].seats.size();
  }
}

void Run::Engine::add_peers(std::uint32_t job, std::uint32_t first_seat) {
  const Pattern& pattern = *jobs_[job].pattern;
  const auto& members = jobs_[job].members;
  std::unordered_map<Rank, std::uint32_t> seat_of_rank;
  const auto count = static_cast<std::uint32_t>(seats_.size()) - first_seat;
  const std::vector<Rank> representatives = folding_ ? folding_->representatives() : std::vector<Rank>{};
  for (std::uint32_t i = 0; i < representatives.size(); ++i) seat_of_rank.emplace(representatives[i], i);
  std::vector<ResourceId> way;
  std::vector<Use> uses;
  for (std::uint32_t i = 0; i < count; ++i) {
    Seat& seat = seats_[first_seat + i];
    const Rank own = folding_ ? representatives[i] : static_cast<Rank>(i);
    seat.first_peer = static_cast<std::uint32_t>(peers_.size());
    for (Rank named : program(seat).peers) {
      const Rank r = pattern.peer(own, named);
      Peer peer{.seat = first_seat + (folding_ ? seat_of_rank.at(folding_->representative(r)) : r),
                .rank = members.empty() ? r : members[r],
                .first = static_cast<std::uint32_t>(links_.size())};
      way.clear();
      machine_.route(seat.rank, peer.rank, way);
      uses.clear();
      for (ResourceId link : way) {
        peer.latency += machine_.latency(link);
        const std::uint32_t weight = one_use * (folding_ ? folding_->sharers(link) : 1);
        if (folding_)
          add_use(uses, number(link), weight);
        else
          uses.push_back({link, weight});
      }
      links_.insert(links_.end(), uses.begin(), uses.end());
      peer.count = static_cast<std::uint32_t>(uses.size());
      peers_.push_back(peer);
    }
  }
}

// Each byte that a rank's engines read or write counts against them, and against the HBM that it lies in. A sender's
// engines read and write; where what arrives is added to what is there, the receiver's read that. Two that are fed by
// one read pay for that once.
void Run::Engine::uses_of(const Seat& seat, const Move& m, std::vector<Use>& uses) const {
  const auto use = [&](ResourceId r, std::uint32_t touches) {
    if (r == no_resource || touches == 0) return;
    add_use(uses, number_known(r), touches * one_use * (folding_ ? folding_->sharers(r) : 1));
  };
  if (m.peer == no_peer) {
    const std::uint32_t touches = m.sources + (m.copies_twice ? 2U : 1U);
    use(machine_.hbm(seat.rank), touches);
    return use(machine_.dma(seat.rank), touches);
  }
  const Peer& peer = peers_[seat.first_peer + static_cast<std::uint32_t>(m.peer)];
  uses.insert(uses.end(), links_.begin() + peer.first, links_.begin() + peer.first + peer.count);
  std::uint32_t writes = 1;
  if (m.second != no_peer) {
    const Peer& also = peers_[seat.first_peer + static_cast<std::uint32_t>(m.second)];
    for (std::uint32_t i = also.first; i < also.first + also.count; ++i)
      add_use(uses, links_[i].resource, links_[i].weight);
    use(machine_.hbm(also.rank), 1);
    ++writes;
  }
  const std::uint32_t reads = m.summed > 0 ? m.summed : 1;
  use(machine_.hbm(seat.rank), reads);
  use(machine_.dma(seat.rank), reads + writes);
  use(machine_.hbm(peer.rank), m.adds ? 2 : 1);
  if (m.adds) use(machine_.dma(peer.rank), 1);
}

// A source of a sum on the same chip is read where it lies, and a sum that is only sent on is formed on its way.
bool Run::Engine::needs_no_bytes(const Seat& seat, const Move& m) const {
  if (m.chunks == 0 || m.forwards) return true;
  return m.staged && m.second == no_peer && machine_.cores() > 1 &&
         peers_[seat.first_peer + static_cast<std::uint32_t>(m.peer)].count == 0;
}

Run::Engine::Numbered Run::Engine::numbered(std::int64_t number) const {
  const auto wanted = static_cast<std::uint64_t>(number);
  const Row& row = *(std::ranges::upper_bound(rows_, wanted, {}, &Row::first_move) - 1);
  const std::uint64_t place = wanted - row.first_move, stride = row.seats.size();
  return {row.seats[place % stride], static_cast<std::uint32_t>(place / stride)};
}

Time Run::Engine::run() {
  std::uint32_t most = 0;
  for (const Job& job : jobs_)
    for (const PatternClass& c : job.pattern->classes())
      for (const Move& m : c.moves) most = std::max(most, m.waits);
  if (most <= std::numeric_limits<std::uint8_t>::max()) return Loop<std::uint8_t>(*this).run(chunk_work_);
  return Loop<std::uint32_t>(*this).run(chunk_work_);
}

}  // namespace trellis::sim
