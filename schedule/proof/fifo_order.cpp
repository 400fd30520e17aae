#include "schedule/proof/fifo_order.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "schedule/proof/step_wiring.h"

namespace trellis::schedule {
namespace {

using Edge = std::pair<StepId, StepId>;  // the second waits for the first

struct Message {
  Rank from, to;
  std::int32_t queue, channel, tag;
  StepId send, receive;
  auto line() const { return std::tuple(from, to, queue); }
  auto as_numbered() const { return std::tuple(from, to, queue, place_in_queue(channel, tag)); }
};

std::vector<Message> messages_of(const Schedule& s, const StepWiring& wiring, int queues) {
  std::vector<Message> all;
  for (Rank r = 0; r < s.ranks(); ++r) {
    const std::vector<Step>& steps = s.programs[r].steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (!sends(step.op)) continue;
      const StepId id = wiring.id(r, static_cast<std::int64_t>(i));
      const auto add = [&](const End& end, StepId receive) {
        all.push_back({r, end.peer, step.channel % queues, step.channel, end.tag, id, receive});
      };
      add(step.end, wiring.partner(id));
      if (const StepId also = wiring.second_partner(id); also != StepWiring::none) add(step.second, also);
    }
  }
  std::ranges::sort(all, {}, &Message::as_numbered);
  return all;
}

// Events of a run: each local step is one event, and each send with all its receives is one. An event is named by the
// local step or the send.
class Moments {
 public:
  Moments(const Schedule& s, const StepWiring& wiring) : s_(s), wiring_(wiring), of_(wiring.count()) {
    for (Rank r = 0; r < s.ranks(); ++r)
      for (std::size_t i = 0; i < s.programs[r].steps.size(); ++i) {
        const StepId id = wiring.id(r, static_cast<std::int64_t>(i));
        of_[id] = receives(s.programs[r].steps[i].op) ? wiring.partner(id) : id;
        count_ += of_[id] == id ? 1 : 0;
      }
  }

  StepId of(StepId step) const { return of_[step]; }

  struct Walk {
    std::vector<StepId> place;         // by event: number of events before it
    std::vector<std::uint32_t> depth;  // by event: number of transfers in the longest chain that ends with it
  };

  // A topological order; none if some event never happens. `messages` is in queue order; empty: no queues.
  std::optional<Walk> walk(const std::vector<Message>& messages) const {
    const std::vector<Edge> edges = edges_with(messages);
    std::vector<std::uint32_t> begin(of_.size() + 1), waits(of_.size());
    for (const auto& [before, then] : edges) ++begin[before + 1], ++waits[then];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    std::vector<StepId> next(edges.size());
    std::vector<std::uint32_t> at(begin.begin(), begin.end() - 1);
    for (const auto& [before, then] : edges) next[at[before]++] = then;

    Walk walk{std::vector<StepId>(of_.size()), std::vector<std::uint32_t>(of_.size())};
    std::vector<StepId> open;
    open.reserve(count_);
    for (StepId id = 0; id < of_.size(); ++id)
      if (of_[id] == id && waits[id] == 0) open.push_back(id);
    for (std::size_t i = 0; i < open.size(); ++i) {
      const StepId id = open[i];
      walk.place[id] = static_cast<StepId>(i);
      walk.depth[id] += wiring_.partner(id) == StepWiring::none ? 0 : 1;
      for (std::uint32_t e = begin[id]; e < begin[id + 1]; ++e) {
        walk.depth[next[e]] = std::max(walk.depth[next[e]], walk.depth[id]);
        if (--waits[next[e]] == 0) open.push_back(next[e]);
      }
    }
    return open.size() == count_ ? std::optional(std::move(walk)) : std::nullopt;
  }

 private:
  std::vector<Edge> edges_with(const std::vector<Message>& messages) const {
    std::vector<Edge> edges;
    for (Rank r = 0; r < s_.ranks(); ++r) {
      const Program& program = s_.programs[r];
      for (std::size_t i = 0; i < program.steps.size(); ++i)
        for (const std::int32_t before : program.after(program.steps[i]))
          edges.emplace_back(of_[wiring_.id(r, before)], of_[wiring_.id(r, static_cast<std::int64_t>(i))]);
    }
    for (std::size_t m = 1; m < messages.size(); ++m)
      if (messages[m - 1].line() == messages[m].line() && messages[m - 1].send != messages[m].send)
        edges.emplace_back(messages[m - 1].send, messages[m].send);
    return edges;
  }

  const Schedule& s_;
  const StepWiring& wiring_;
  std::vector<StepId> of_;  // by step
  std::size_t count_ = 0;
};

// Each program's steps in the order of their events, and the inverse mapping.
struct Listing {
  std::vector<std::vector<std::int32_t>> steps, numbers;
};

Listing listing_by(const Schedule& s, const StepWiring& wiring, const Moments& moments, const Moments::Walk& walk) {
  Listing all;
  for (Rank r = 0; r < s.ranks(); ++r) {
    const auto count = static_cast<std::int32_t>(s.programs[r].steps.size());
    std::vector<std::int32_t>& steps = all.steps.emplace_back();
    for (std::int32_t i = 0; i < count; ++i) steps.push_back(i);
    std::ranges::stable_sort(steps, {}, [&](std::int32_t i) { return walk.place[moments.of(wiring.id(r, i))]; });
    std::vector<std::int32_t>& numbers = all.numbers.emplace_back(count);
    for (std::int32_t i = 0; i < count; ++i) numbers[steps[i]] = i;
  }
  return all;
}

Program relisted(const Program& program, const std::vector<std::int32_t>& steps,
                 const std::vector<std::int32_t>& numbers) {
  Program out{.scratch = program.scratch, .scratch_sizes = program.scratch_sizes};
  for (const std::int32_t i : steps) {
    Step step = program.steps[i];
    std::vector<std::int32_t> after;
    for (const std::int32_t before : program.after(step)) after.push_back(numbers[before]);
    std::ranges::sort(after);
    out.set_further(step, program.further(program.steps[i]));
    out.set_after(step, after);
    out.steps.push_back(step);
  }
  return out;
}

void connect(const Schedule& s, StepWiring& wiring) {
  if (const auto fault = StepWiring::connect(s, wiring)) throw std::invalid_argument(fault->text);
}

// Sorts messages so that none waits for one behind it in its queue. Every message has a longer chain before it than
// those that it waits for. Among equals, messages go in the order of their sends in the program, and two messages of
// one send by tag.
void sort_by_depth(const StepWiring& wiring, const Moments::Walk& walk, std::vector<Message>& messages) {
  std::ranges::sort(messages, {}, [&](const Message& m) {
    return std::tuple(m.from, m.to, m.queue, walk.depth[m.send], wiring.step(m.send), m.tag);
  });
}

void number(const StepWiring& wiring, const std::vector<Message>& messages, const Listing& listing, Schedule& s) {
  const auto listed = [&](Rank r, StepId id) -> Step& {
    return s.programs[r].steps[listing.numbers[r][wiring.step(id)]];
  };
  std::int32_t tag = 0;
  for (std::size_t m = 0; m < messages.size(); ++m) {
    const Message& message = messages[m];
    tag = m > 0 && messages[m - 1].line() == message.line() ? tag + 1 : 0;
    Step& send = listed(message.from, message.send);
    (wiring.partner(message.send) == message.receive ? send.end : send.second).tag = tag;
    listed(message.to, message.receive).end.tag = tag;
  }
  for (Program& program : s.programs)
    for (Step& step : program.steps) step.channel = static_cast<std::uint8_t>(step.channel % s.channels);
}

}  // namespace

bool passes_in_order(const Schedule& s, int queues) {
  StepWiring wiring;
  connect(s, wiring);
  return Moments(s, wiring).walk(messages_of(s, wiring, queues)).has_value();
}

FifoOrderedSchedule queued(const Schedule& s, int queues) {
  StepWiring wiring;
  connect(s, wiring);
  const Moments moments(s, wiring);
  std::vector<Message> messages = messages_of(s, wiring, queues);
  std::optional<Moments::Walk> walk = moments.walk(messages);
  if (!walk) {
    const auto free = moments.walk({});
    if (!free) throw std::invalid_argument("some step of the schedule can never start");
    sort_by_depth(wiring, *free, messages);
    walk = moments.walk(messages);
    if (!walk) throw std::logic_error("messages by the chains before them wait for each other in a circle");
  }
  Listing listing = listing_by(s, wiring, moments, *walk);
  FifoOrderedSchedule out{
      {.task = s.task, .algorithm = s.algorithm, .channels = std::min(s.channels, queues), .programs = {}}, {}};
  for (Rank r = 0; r < s.ranks(); ++r)
    out.schedule.programs.push_back(relisted(s.programs[r], listing.steps[r], listing.numbers[r]));
  number(wiring, messages, listing, out.schedule);
  out.origins = std::move(listing.steps);
  return out;
}

}  // namespace trellis::schedule
