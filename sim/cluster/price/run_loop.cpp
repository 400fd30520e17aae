#include <algorithm>
#include <cassert>
#include <cmath>
#include <deque>
#include <limits>
#include <unordered_map>

#include "kernels/types/random.h"
#include "sim/cluster/price/run_engine.h"
#include "sim/hardware/time/natural_merge_sort.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

// An event of a move of a seat, encoded as one number. Events of one instant are handled in the order of their seats,
// which is the order of memory. Loads are numbered after the seats.
enum class Kind : std::uint8_t { ready, begin, sent, arrived, arrived_second, may_send, launched, load };
using Event = std::uint64_t;
constexpr std::uint32_t move_bits = 29, most_moves = 1U << move_bits;

constexpr Event event_of(std::uint32_t seat, std::uint32_t move, Kind kind = Kind::ready) {
  return Event{seat} << 32 | Event{static_cast<std::uint8_t>(kind)} << move_bits | move;
}
constexpr std::uint32_t seat_in(Event e) { return static_cast<std::uint32_t>(e >> 32); }
constexpr std::uint32_t move_in(Event e) { return static_cast<std::uint32_t>(e) & (most_moves - 1); }
constexpr Kind kind_in(Event e) { return static_cast<Kind>(static_cast<std::uint32_t>(e) >> move_bits); }

Time scaled(Time t, float slowness) {
  return slowness == 1.0F ? t : time_of_picoseconds(static_cast<double>(t) * static_cast<double>(slowness));
}

// The event loop, instant by instant.
class Loop {
 public:
  explicit Loop(SimulationRun::Engine& engine)
      : e_(engine),
        trace_(!engine.traces_.empty()),
        o_(engine.overheads_),
        plain_(o_.handshake + o_.reduce + o_.message + o_.away + o_.dma_start == 0),
        instant_moves_(plain_ && o_.semaphore == 0),
        noise_(engine.settings_.noise ? o_.noise : 0),
        chance_(kernels::random_key({.seed = engine.settings_.noise.value_or(0)})) {
    for (const auto& row : e_.rows_)
      if (!row.seats.empty()) add_waits(row);
  }

  Time run() {
    open();
    std::vector<Event> row, ended;
    NaturalMergeSort<Event> sorter;
    Network& network = *e_.network_;
    while (true) {
      sorter.sort(ready_);
      for (std::size_t i = 0; i < ready_.size(); ++i) {
        start(seat_in(ready_[i]), move_in(ready_[i]));
        end_instant_moves();
      }
      ready_.clear();
      network.settle();
      if (done_ == moves() && loads_left_ == 0 && queue_.empty()) break;  // the network may still have stale ends
      const Time next = std::min(queue_.next(), network.next());
      if (next == forever) break;
      if (next > e_.settings_.limit || stopped()) return forever;
      now_ = next;
      ended.clear();
      network.advance(next, ended);
      sorter.sort(ended);
      for (Event e : ended) {
        seat_in(e) < e_.seats_.size() ? end(seat_in(e), move_in(e)) : end_load(seat_in(e));
        end_instant_moves();
      }
      while (queue_.next() == next) {
        queue_.pop(row);
        e_.events_ += std::ssize(row);
        sorter.sort(row);
        for (Event event : row) {
          happen(event);
          end_instant_moves();
        }
      }
    }
    if (done_ < moves()) text::refuse("{} of {} moves of the schedule can never start", moves() - done_, moves());
    Time last = 0;
    for (const Time end : e_.ended_) last = std::max(last, end);
    for (const Time end : e_.loads_ended_) last = std::max(last, end);
    return last;
  }

 private:
  std::int64_t moves() const { return static_cast<std::int64_t>(e_.moves_); }

  // Ranks of a row mostly do the same move at the same time, or each does its moves in sequence. So the counts of a
  // block of moves of one rank are contiguous in waits_, followed by those of the same block of the other ranks.
  static constexpr std::uint32_t block = 16;  // moves
  static constexpr std::uint32_t most_waits = std::numeric_limits<std::uint8_t>::max();
  void add_waits(const SimulationRun::Engine::Row& row) {
    const auto& program = e_.program(e_.seats_[row.seats[0]]).moves;
    const std::size_t first = waits_.size() / block, blocks = (program.size() + block - 1) / block;
    for (std::size_t i = 0; i < row.seats.size(); ++i)
      e_.seats_[row.seats[i]].first_wait = static_cast<std::uint32_t>(first + i);
    waits_.resize(waits_.size() + blocks * row.seats.size() * block);
    for (const std::uint32_t at : row.seats)
      for (std::uint32_t m = 0; m < program.size(); ++m) {
        const std::uint32_t waits = program[m].waits, rounds = waits == 0 ? 0 : (waits - 1) / most_waits;
        waits_of(e_.seats_[at], m) = static_cast<std::uint8_t>(waits - rounds * most_waits);
        if (rounds > 0) rounds_[e_.number(e_.seats_[at], m)] = rounds;
      }
  }
  std::uint8_t& waits_of(const SimulationRun::Engine::Seat& seat, std::uint32_t move) {
    return waits_[(seat.first_wait + std::size_t{seat.stride} * (move / block)) * block + move % block];
  }

  // Counts down the ends that the move still waits for. Returns true if this was the last.
  bool may_start(const SimulationRun::Engine::Seat& seat, std::uint32_t move) {
    std::uint8_t& waits = waits_of(seat, move);
    if (--waits > 0) return false;
    if (rounds_.empty() || e_.program(seat).moves[move].waits <= most_waits) return true;
    std::uint32_t& rounds = rounds_.at(e_.number(seat, move));
    if (rounds == 0) return true;
    --rounds;
    waits = most_waits;
    return false;
  }

  bool stopped() {
    const std::int64_t past = e_.events_ + e_.transfers_;
    if (!e_.settings_.stopped || past < asked_ + events_between) return false;
    asked_ = past;
    return e_.settings_.stopped(now_, static_cast<double>(done_) / static_cast<double>(moves()));
  }

  void open() {
    for (std::uint32_t i = 0; i < e_.seats_.size(); ++i) {
      const auto& seat = e_.seats_[i];
      const SimulatedCollective& collective = e_.collectives_[seat.collective];
      const schedule::Task& task = collective.pattern->task();
      const Time software = o_.launched(task.ranks) + (uneven(task.operation.collective) ? o_.counts : 0);
      const Time start = later(collective.start, noisy(software, i, Delay::launch));
      e_.ended_[seat.collective] = start;
      assert(e_.program(seat).moves.size() <= most_moves);
      queue_.push(start, event_of(i, 0, Kind::launched));
    }
    for (std::uint32_t i = 0; i < e_.loads_.size(); ++i) {
      if (e_.loads_[i].like != i) continue;
      queue_.push(e_.settings_.loads[i].start, event_of(tag_of_load(i), 0, Kind::load));
      ++loads_left_;
    }
  }

  std::uint32_t tag_of_load(std::uint32_t number) const {
    return static_cast<std::uint32_t>(e_.seats_.size()) + number;
  }
  std::uint32_t load_of_tag(std::uint32_t tag) const { return tag - static_cast<std::uint32_t>(e_.seats_.size()); }

  void begin_load(std::uint32_t tag) {
    const std::uint32_t number = load_of_tag(tag);
    const HbmLoad& load = e_.settings_.loads[number];
    const ResourceUse uses[] = {e_.loads_[number].hbm, e_.loads_[number].rate};
    const Work work = work_of(load.bytes, e_.unit_);
    if (work == 0 || load.rate <= 0) return end_load(tag);
    e_.network_->start(uses, work, event_of(tag, 0));
  }

  void end_load(std::uint32_t tag) {
    e_.loads_ended_[load_of_tag(tag)] = now_;
    --loads_left_;
  }

  void launch(std::uint32_t at) {
    const auto& moves = e_.program(e_.seats_[at]).moves;
    for (std::uint32_t m = 0; m < moves.size(); ++m)
      if (moves[m].waits == 0) make_ready(at, m);
  }

  void happen(Event event) {
    const std::uint32_t at = seat_in(event), number = move_in(event);
    const Kind kind = kind_in(event);
    if (kind == Kind::load) return begin_load(at);
    if (kind == Kind::launched) return launch(at);
    const auto& seat = e_.seats_[at];
    if (kind == Kind::begin) return begin_in_turn(at, number);
    if (kind == Kind::may_send) return begin_next(at, number);
    const std::uint64_t cause = e_.number(seat, number);
    const Move& m = e_.program(seat).moves[number];
    if (kind == Kind::sent) return let_go(at, m.step, cause);
    const bool also = kind == Kind::arrived_second;
    const auto& peer = e_.peers_[seat.first_peer + static_cast<std::uint32_t>(also ? m.second : m.peer)];
    let_go(peer.seat, also ? m.second_arrival : m.arrival, cause);
  }

  bool goes_away(const SimulationRun::Engine::Seat& seat, const Move& m) const {
    return o_.away > 0 && m.peer != no_peer && !e_.needs_no_bytes(seat, m) &&
           e_.peers_[seat.first_peer + static_cast<std::uint32_t>(m.peer)].away;
  }

  // Messages to one peer on one channel move one after the other. Messages to other hosts do so for all peers, with a
  // pause in between.
  struct Lane {
    std::uint8_t* busy = nullptr;  // null: the message need not wait
    std::uint8_t bit = 1;
    std::uint64_t line = 0;  // key of the queue
  };
  Lane lane_of(std::uint32_t at, const Move& m) {
    auto& seat = e_.seats_[at];
    if (m.peer == no_peer || e_.needs_no_bytes(seat, m)) return {};
    const std::uint64_t line = std::uint64_t{at} << 32;
    if (goes_away(seat, m)) return {.busy = &seat.sends_away, .line = line};
    const std::uint32_t lane = m.channel % SimulationRun::Engine::lanes;
    const std::uint64_t peer = seat.first_peer + static_cast<std::uint32_t>(m.peer);
    return {.busy = &e_.peers_[peer].sending,
            .bit = static_cast<std::uint8_t>(1U << lane),
            .line = line + (static_cast<std::uint32_t>(m.peer) + 1) * SimulationRun::Engine::lanes + lane};
  }

  void begin_in_turn(std::uint32_t at, std::uint32_t number) {
    const Lane lane = lane_of(at, e_.program(e_.seats_[at]).moves[number]);
    if (lane.busy) {
      if (*lane.busy & lane.bit) return lines_[lane.line].push_back(number);
      *lane.busy |= lane.bit;
    }
    begin(at, number);
  }

  // The move has freed its lane: begins the next message that waits for it.
  void begin_next(std::uint32_t at, std::uint32_t number) {
    const auto& seat = e_.seats_[at];
    const Lane lane = lane_of(at, e_.program(seat).moves[number]);
    if (!lane.busy) return;
    const auto line = lines_.empty() ? lines_.end() : lines_.find(lane.line);
    if (line == lines_.end()) {
      *lane.busy &= static_cast<std::uint8_t>(~lane.bit);
      return;
    }
    const std::uint32_t next = line->second.front();
    line->second.pop_front();
    if (line->second.empty()) lines_.erase(line);
    if (trace_) {
      const std::uint64_t before = e_.number(seat, number);
      MoveTrace& trace = e_.traces_[e_.number(seat, next)];
      trace.cause = static_cast<std::int64_t>(before), trace.ready = e_.traces_[before].end;
    }
    begin(at, next);
  }

  enum class Delay : std::uint8_t { launch, step, away };

  // A random increase of the delay. It is the same for the same seed, delay and number.
  Time noisy(Time delay, std::uint64_t number, Delay what) const {
    if (noise_ <= 0 || delay == 0) return delay;
    const std::uint64_t word = kernels::random_word(chance_, number * 4 + static_cast<std::uint64_t>(what));
    const double uniform = (static_cast<double>(word >> 11) + 1) * 0x1p-53;  // above 0, at most 1
    return delay + time_of_picoseconds(noise_ * static_cast<double>(delay) * -std::log(uniform));
  }

  // What precedes the bytes: a turn at the sender's collective cores, the handshake, the DMA's start.
  void start(std::uint32_t at, std::uint32_t number) {
    if (plain_) return begin_in_turn(at, number);
    auto& seat = e_.seats_[at];
    const Move& m = e_.program(seat).moves[number];
    const bool bytes = !e_.needs_no_bytes(seat, m);
    Time before = m.adds && bytes ? o_.reduce : 0;
    if (m.peer != no_peer) before += o_.handshake;
    before = noisy(before, e_.number(seat, number), Delay::step);
    float slowness = seat.slowness;
    if (m.peer != no_peer) {
      const auto& peer = e_.peers_[seat.first_peer + static_cast<std::uint32_t>(m.peer)];
      slowness = std::max(slowness, e_.seats_[peer.seat].slowness);
    }
    if (bytes) before += o_.dma_start;
    before = scaled(before, slowness);
    if (o_.message > 0 && m.peer != no_peer) {
      seat.busy = later(std::max(seat.busy, now_), scaled(o_.message, slowness));
      before += seat.busy - now_;
    }
    if (before == 0) return begin_in_turn(at, number);
    queue_.push(later(now_, before), event_of(at, number, Kind::begin));
  }

  void begin(std::uint32_t at, std::uint32_t number) {
    const auto& seat = e_.seats_[at];
    const Move& m = e_.program(seat).moves[number];
    if (trace_) e_.traces_[e_.number(seat, number)].begin = now_;
    const Work work = e_.needs_no_bytes(seat, m) ? 0 : e_.chunk_work_[seat.collective] * m.chunks;
    if (m.peer != no_peer) ++e_.transfers_;
    uses_.clear();
    if (work > 0) e_.uses_of(seat, m, uses_);
    if (uses_.empty()) return end(at, number);
    e_.network_->start(uses_, work, event_of(at, number));
  }

  void end(std::uint32_t at, std::uint32_t number) {
    const auto& seat = e_.seats_[at];
    const Move& m = e_.program(seat).moves[number];
    ++done_;
    if (trace_) e_.traces_[e_.number(seat, number)].end = now_;
    if (goes_away(seat, m)) {
      const Time away = noisy(o_.away, e_.number(seat, number), Delay::away);
      queue_.push(later(now_, scaled(away, seat.slowness)), event_of(at, number, Kind::may_send));
    } else {
      begin_next(at, number);
    }
    if (o_.semaphore == 0)
      let_go(at, m.step, e_.number(seat, number));
    else
      queue_.push(later(now_, o_.semaphore), event_of(at, number, Kind::sent));
    if (m.peer == no_peer) return;
    const auto* peers = e_.peers_.data() + seat.first_peer;
    const Time told = now_ + o_.semaphore;
    queue_.push(later(told, peers[m.peer].latency), event_of(at, number, Kind::arrived));
    if (m.second != no_peer)
      queue_.push(later(told, peers[m.second].latency), event_of(at, number, Kind::arrived_second));
  }

  void let_go(std::uint32_t at, std::uint32_t step, std::uint64_t cause) {
    const auto& seat = e_.seats_[at];
    const RankClassProgram& program = e_.program(seat);
    e_.ended_[seat.collective] = std::max(e_.ended_[seat.collective], now_);
    for (std::uint32_t i = program.begin[step]; i < program.begin[step + 1]; ++i) {
      const DependentMove& f = program.followers[i];
      const std::uint32_t target =
          f.peer == no_peer ? at : e_.peers_[seat.first_peer + static_cast<std::uint32_t>(f.peer)].seat;
      const auto& keeper = e_.seats_[target];
      if (!may_start(keeper, f.move)) continue;
      if (trace_) e_.traces_[e_.number(keeper, f.move)].cause = static_cast<std::int64_t>(cause);
      make_ready(target, f.move);
    }
  }

  // A move that takes no time ends right after the event that is being handled. There can be thousands of such moves
  // for each rank, so they are not kept until all of this instant's events have been handled.
  void make_ready(std::uint32_t at, std::uint32_t number) {
    const auto& seat = e_.seats_[at];
    if (trace_) e_.traces_[e_.number(seat, number)].ready = now_;
    const bool instant = instant_moves_ && takes_no_time(seat, e_.program(seat).moves[number]);
    (instant ? instant_ : ready_).push_back(event_of(at, number));
  }

  bool takes_no_time(const SimulationRun::Engine::Seat& seat, const Move& m) const {
    return m.peer == no_peer && (seat.hbm.weight + seat.dma.weight == 0 || e_.needs_no_bytes(seat, m));
  }

  void end_instant_moves() {
    if (!instant_.empty()) end_all_instant_moves();
  }

  // Never inlined, as end_instant_moves() follows every event: this lets the compiler inline let_go() in the event
  // loop.
  [[gnu::noinline]] void end_all_instant_moves() {
    while (!instant_.empty()) {
      const Event e = instant_.back();
      instant_.pop_back();
      const auto& seat = e_.seats_[seat_in(e)];
      const std::uint64_t number = e_.number(seat, move_in(e));
      ++done_;
      if (trace_) e_.traces_[number].begin = e_.traces_[number].end = now_;
      let_go(seat_in(e), e_.program(seat).moves[move_in(e)].step, number);
    }
  }

  SimulationRun::Engine& e_;
  const bool trace_;
  const SoftwareOverheads& o_;
  const bool plain_;          // nothing precedes the bytes
  const bool instant_moves_;  // nothing follows them either: a move without bytes takes no time
  const double noise_;
  const kernels::RandomKey chance_;
  // How many ends a move still waits for: a count by block and move, and for the few moves that wait for more than the
  // count can hold, further rounds of `most_waits`.
  std::vector<std::uint8_t> waits_;
  std::unordered_map<std::uint64_t, std::uint32_t> rounds_;
  BatchedEventQueue<Event> queue_;
  std::vector<Event> ready_, instant_;
  std::unordered_map<std::uint64_t, std::deque<std::uint32_t>> lines_;  // by Lane::line; none is empty
  std::vector<ResourceUse> uses_;
  Time now_ = 0;
  std::int64_t done_ = 0;
  std::size_t loads_left_ = 0;
  static constexpr std::int64_t events_between = 1024;  // between two polls of `stopped`
  std::int64_t asked_ = 0;                              // events at the last poll
};

}  // namespace

Time SimulationRun::Engine::run() { return Loop(*this).run(); }

}  // namespace trellis::sim
