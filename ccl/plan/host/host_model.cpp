#include "ccl/plan/host/host_model.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "ccl/plan/planner.h"
#include "ccl/transports/segment/cells.h"

namespace trellis::ccl {
namespace {

using schedule::Op;

constexpr double least_in_place = 4096;  // bytes
constexpr double least_piece = 16384;
constexpr double usual_l3 = 64 << 20;
constexpr std::size_t back_to_back_bytes = 4096;
constexpr int back_to_back_operations = 3;

// How far `bytes` count as exceeding `room`: 0 up to half of the room, 1 from twice the room on.
double share_beyond(double bytes, double room) {
  return bytes <= 0 || room <= 0 ? 0 : std::clamp(std::log2(bytes / room * 2) / 2, 0.0, 1.0);
}

struct Conditions {
  HostCosts costs;
  double level = 1;      // factor of the cost of every byte
  double made_here = 1;  // further factor for reading bytes in place that the operation has made
  bool data = true, readable = true;
};

class Walk {
 public:
  Walk(const JoinedPrograms& joined, const Conditions& how)
      : joined_(joined),
        how_(how),
        clocks_(joined.lines.size()),
        served_(joined.lines.size()),
        arrival_(joined.steps.size()) {}

  // Runs one more operation. Returns the time in ns at which the last rank ends it.
  double operation() {
    for (double& clock : clocks_) clock += how_.costs.operation;
    begun_ = clocks_;
    waits_.clear();
    unpublished_.assign(joined_.published.size(), 0);
    for (const JoinedStep& s : joined_.steps)
      if (s.round >= 0 && schedule::sends(s.op)) ++unpublished_[static_cast<std::size_t>(s.round)];
    unread_.assign(joined_.steps.size(), 0);
    for (const JoinedStep& s : joined_.steps) waits_.push_back(s.waits + (schedule::receives(s.op) ? 1U : 0U));
    for (std::uint32_t i = 0; i < joined_.steps.size(); ++i)
      if (waits_[i] == 0) ready_.emplace(begun_[joined_.steps[i].program], i);
    while (!ready_.empty()) {
      const auto [when, step] = ready_.top();
      ready_.pop();
      run(step, std::max(when, clocks_[joined_.steps[step].program]));
    }
    return *std::ranges::max_element(clocks_);
  }

 private:
  void run(std::uint32_t i, double now) {
    const JoinedStep& s = joined_.steps[i];
    double& clock = clocks_[s.program];
    const bool message = schedule::sends(s.op) || schedule::receives(s.op);
    if (s.round >= 0 && schedule::sends(s.op)) return publish(i, now);
    if (how_.data && s.bytes == 0 && s.round < 0) {
      if (schedule::sends(s.op))
        for (const std::uint32_t end : s.ends) let(end, now);
      return finish(i, now);
    }
    clock = message ? now : now + how_.costs.local + s.bytes * s.sources * how_.costs.byte_local * how_.level;
    if (schedule::sends(s.op)) return send(i, clock);
    if (schedule::receives(s.op)) receive(i, clock);
    finish(i, clock);
  }

  // Publishes a round's messages together, once the last of its sends is ready.
  void publish(std::uint32_t i, double now) {
    const auto round = static_cast<std::size_t>(joined_.steps[i].round);
    double& clock = clocks_[joined_.steps[i].program];
    clock = std::max(clock, now);
    if (--unpublished_[round] != 0) return;
    clock += how_.costs.send;
    if (!in_place(joined_.steps[i])) clock += joined_.published[round] * how_.costs.byte_into_slot * how_.level;
    for (std::uint32_t k = 0; k < joined_.steps.size(); ++k) {
      const JoinedStep& send = joined_.steps[k];
      if (send.round != joined_.steps[i].round || !schedule::sends(send.op)) continue;
      for (const std::uint32_t end : send.ends) let(end, clock + flight(joined_.steps[end]));
      end_send(k, clock);
    }
  }

  bool in_cell(const JoinedStep& s) const { return s.bytes <= LaneCell::room; }
  bool in_place(const JoinedStep& sender) const {
    return sender.bytes >= least_in_place && (how_.readable || sender.from_scratch);
  }
  double second_line(const JoinedStep& s) const { return s.bytes > LaneCell::beside ? how_.costs.second_line : 0; }
  double flight(const JoinedStep& receive) const {
    return how_.costs.flight * (receive.far ? how_.costs.far_flight : 1);
  }

  void send(std::uint32_t i, double& clock) {
    const JoinedStep& s = joined_.steps[i];
    for (const std::uint32_t end : s.ends) {
      double first = clock += how_.costs.send;
      if (in_cell(s)) {
        first = clock += second_line(s);
      } else if (!in_place(s)) {
        const double byte = how_.costs.byte_into_slot * how_.level;
        first = clock + how_.costs.slot + piece(s.bytes) * byte;
        clock += how_.costs.slot + s.bytes * byte;
      }
      arrival_[end] = clock + flight(joined_.steps[end]);
      let(end, first + flight(joined_.steps[end]));
    }
    end_send(i, clock);
  }

  void end_send(std::uint32_t i, double clock) {
    if (in_place(joined_.steps[i]))
      unread_[i] = joined_.steps[i].ends.size();
    else
      finish(i, clock);
  }

  void receive(std::uint32_t i, double& clock) {
    const JoinedStep& s = joined_.steps[i];
    const std::uint32_t from = s.ends.front();
    const JoinedStep& sender = joined_.steps[from];
    const HostCosts& c = how_.costs;
    clock += s.round >= 0 ? c.take : c.receive + c.look * static_cast<double>(joined_.lines[s.program]);
    if (in_cell(s)) {
      clock += second_line(s);
      return;
    }
    double byte = s.op == Op::recv_reduce ? c.byte_added : 0;
    byte += in_place(sender) ? c.byte_read * (sender.made_here ? how_.made_here : 1) : c.byte_from_slot;
    byte *= how_.level * (s.far ? c.far_byte : 1);
    double& served = served_[sender.program];
    if (in_place(sender)) served = std::max(served, clock) + s.bytes * c.byte_served;
    clock += s.bytes * byte + (in_place(sender) ? c.in_place : c.slot);
    if (!in_place(sender)) {
      if (s.round < 0) clock = std::max(clock, arrival_[i] + piece(s.bytes) * byte);
      return;
    }
    clock = std::max(clock, served);
    if (--unread_[from] == 0) finish(from, clock + flight(s) + c.answer);
  }

  // The size of the pieces in which a message moves through slots. The receiver begins when the first one has arrived.
  static double piece(double bytes) { return std::min(bytes, std::max(bytes / 4, least_piece)); }

  void let(std::uint32_t i, double when) {
    if (--waits_[i] == 0) ready_.emplace(std::max(when, begun_[joined_.steps[i].program]), i);
  }
  void finish(std::uint32_t i, double when) {
    const JoinedStep& s = joined_.steps[i];
    for (std::uint32_t k = 0; k < s.follow_count; ++k) let(joined_.followers[s.follows + k], when);
  }

  using Ready = std::pair<double, std::uint32_t>;
  const JoinedPrograms& joined_;
  const Conditions& how_;
  std::vector<double> clocks_, begun_;  // by program: its rank's time now, and at the start of the operation
  std::vector<double> served_;          // by program: when its memory has served all of the others' reads so far
  std::vector<double> arrival_;         // of a message's last byte, by receiving step
  std::vector<std::size_t> unread_;     // receivers that have yet to read a message in place, by sending step
  std::vector<std::uint32_t> waits_;
  std::vector<std::uint32_t> unpublished_;  // by round: sends that are not ready
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
};

Conditions conditions(const JoinedPrograms& joined, const Call& call, Rank ranks, const RankCores& places,
                      const HostCosts& costs, bool readable) {
  const auto touched = static_cast<double>(joined.touched_bytes);
  const double usual = usual_l3 * std::max(1, places.l3_caches);
  const double usable_l3 = places.l3_bytes == 0 ? usual : std::min(usual, static_cast<double>(places.l3_bytes));
  Conditions how{.costs = costs,
                 .data = schedule::carries_data(call.operation.collective) && call.count != 0,
                 .readable = readable};
  how.level = (1 + costs.each_rank * (ranks - 2)) *
              (1 + costs.beyond_l2 * share_beyond(touched, static_cast<double>(places.l2_bytes)) +
               costs.beyond_l3 * share_beyond(touched * ranks, usable_l3));
  const bool streams = places.l3_bytes != 0 && touched * ranks > static_cast<double>(places.l3_bytes);
  how.made_here = 1 + costs.made_here + (streams ? costs.streamed : 0);
  if (ranks <= places.cores) return how;
  const double each = static_cast<double>(ranks) / places.cores;
  HostCosts& c = how.costs;
  for (double* const busy :
       {&c.operation, &c.send, &c.receive, &c.take, &c.look, &c.second_line, &c.slot, &c.in_place, &c.local})
    *busy *= each;
  how.level *= each;
  if (ranks > std::max(places.cores, places.threads)) c.flight += c.wake;
  return how;
}

}  // namespace

// Most values are fitted to the times of 8 ranks in bench/results/host16.json; its times of other numbers of ranks are
// used only to check the fit. Costs of bytes are fitted to the times; costs of messages to the regret of the choice, in
// which an error that all candidates share does not count. `byte_served` is from a direct broadcast of 256 KiB there,
// `streamed` from bine with 16 ranks and 16 MiB. Sockets and shared cores were not measured. Usual values are taken:
// between sockets a flight costs twice as much and a byte half as much again, and where ranks outnumber hardware
// threads, `wake` is the time of the scheduler's switch. The threads of a core are taken to share its time evenly.
// `take` was not measured either: it is the cost of a cache line that is fetched while others are on their way, and of
// the message's share of the receiving loop.
const HostCosts sapphire_rapids{.operation = 14,
                                .send = 95,
                                .receive = 190,
                                .take = 45,
                                .look = 5.9,
                                .second_line = 38,
                                .flight = 89,
                                .slot = 181,
                                .in_place = 860,
                                .answer = 171,
                                .local = 151,
                                .byte_into_slot = 0.082,
                                .byte_from_slot = 0.124,
                                .byte_read = 0.064,
                                .byte_served = 0.018,
                                .made_here = 0.46,
                                .byte_added = 0.052,
                                .byte_local = 0.059,
                                .each_rank = 0.043,
                                .beyond_l2 = 0.17,
                                .beyond_l3 = 0.40,
                                .streamed = 3,
                                .far_flight = 2,
                                .far_byte = 1.5,
                                .wake = 5000};

double predicted_time(const JoinedPrograms& joined, const Call& call, Rank ranks, const RankCores& places,
                      const HostCosts& costs, bool readable) {
  constexpr double us = 1e-3;
  const Conditions how = conditions(joined, call, ranks, places, costs, readable);
  Walk walk(joined, how);
  const double first = walk.operation();
  if (larger_bytes(call, ranks) > back_to_back_bytes) return first * us;
  double before = first, last = first;
  for (int i = 1; i < back_to_back_operations; ++i) before = std::exchange(last, walk.operation());
  // Small operations run back to back: the result counts the first one's time once and that of a further one three
  // times.
  return (first + back_to_back_operations * (last - before)) / (back_to_back_operations + 1) * us;
}

}  // namespace trellis::ccl
