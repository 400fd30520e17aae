#include "sim/hardware/timeline/perfetto.h"

#include <algorithm>
#include <functional>

#include "sim/hardware/timeline/timeline_layout.h"
#include "text/protobuf_writer.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

using Message = text::ProtobufWriter;

// Field numbers of perfetto.protos.
namespace trace {
constexpr std::uint32_t packet = 1;
}
namespace packet {
constexpr std::uint32_t timestamp = 8, sequence = 10, event = 11, interned = 12, flags = 13, track = 60;
constexpr std::uint64_t state_cleared = 1, needs_state = 2;  // flags
}  // namespace packet
namespace track {
constexpr std::uint32_t uuid = 1, name = 2, process = 3, thread = 4, parent = 5, counter = 8, ordering = 11, rank = 12;
constexpr std::uint64_t by_rank = 3;  // ordering
}  // namespace track
namespace process {
constexpr std::uint32_t pid = 1, name = 6;
}
namespace thread {
constexpr std::uint32_t pid = 1, tid = 2, name = 5;
}
namespace event {
constexpr std::uint32_t note = 4, type = 9, name = 10, track = 11, own_name = 23, double_value = 44, flow = 47,
                        last_flow = 48;
constexpr std::uint64_t begin = 1, end = 2, instant = 3, counter = 4;  // type
}  // namespace event
namespace interned {
constexpr std::uint32_t event_names = 2, note_names = 3, iid = 1, name = 2;
}
namespace note {
constexpr std::uint32_t name = 1, integer = 4, real = 5, text = 6, own_name = 10;
enum Name : std::uint64_t { wait = 1, waited, bytes, flops, start, duration };
constexpr std::string_view names[] = {"waited for", "waited, ps", "bytes", "flops", "start, ps", "duration, ps"};
}  // namespace note

class Writer {
 public:
  Writer(const Timeline& timeline, Time tick) : timeline_(timeline), tick_(tick), rows_(rows_of(timeline)) {}

  std::string written(const std::vector<std::pair<std::string, std::string>>& made_by) {
    names();
    tracks();
    if (!made_by.empty()) origin(made_by);
    causes();
    events();
    return trace_.take();
  }

 private:
  // Each group, row and counter has a track of its own, numbered in this order.
  std::uint64_t group_uuid(std::size_t group) const { return 1 + group; }
  std::uint64_t row_uuid(std::size_t row) const { return group_uuid(rows_.groups.size()) + row; }
  std::uint64_t counter_uuid(std::size_t counter) const { return row_uuid(rows_.rows.size()) + counter; }

  void put_packet() {
    trace_.message(trace::packet, packet_);
    packet_.clear();
  }

  // Each name is interned once. A label's number is its index plus one.
  void names() {
    Message all, entry;
    const auto put = [&](std::uint32_t field, std::uint64_t iid, std::string_view name) {
      entry.clear();
      entry.number(interned::iid, iid);
      entry.text(interned::name, name);
      all.message(field, entry);
    };
    for (std::size_t l = 0; l < timeline_.labels().size(); ++l)
      put(interned::event_names, l + 1, timeline_.labels()[l]);
    for (std::size_t n = 0; n < std::size(note::names); ++n) put(interned::note_names, n + 1, note::names[n]);
    packet_.number(packet::sequence, 1);
    packet_.message(packet::interned, all);
    packet_.number(packet::flags, packet::state_cleared);
    put_packet();
  }

  void put_track(std::uint64_t uuid, std::uint64_t rank, const std::function<void(Message&)>& what) {
    Message descriptor;
    descriptor.number(track::uuid, uuid);
    what(descriptor);
    descriptor.number(track::rank, rank);
    packet_.number(packet::sequence, 1);
    packet_.message(packet::track, descriptor);
    put_packet();
  }

  void tracks() {
    for (std::size_t g = 0; g < rows_.groups.size(); ++g)
      put_track(group_uuid(g), g, [&](Message& m) {
        Message process;
        process.number(process::pid, g + 1);
        process.text(process::name, rows_.groups[g]);
        m.message(track::process, process);
        m.number(track::ordering, track::by_rank);
      });
    for (std::size_t r = 0; r < rows_.rows.size(); ++r)
      put_track(row_uuid(r), r, [&](Message& m) {
        Message thread;
        thread.number(thread::pid, rows_.rows[r].group + 1);
        thread.number(thread::tid, row_uuid(r));  // unique over all processes
        thread.text(thread::name, row_name(timeline_, rows_.rows[r]));
        m.message(track::thread, thread);
      });
    for (std::size_t c = 0; c < timeline_.counters.size(); ++c)
      put_track(counter_uuid(c), rows_.rows.size() + c, [&](Message& m) {
        m.text(track::name, timeline_.counters[c].name);
        m.number(track::parent, group_uuid(rows_.counter_groups[c]));
        m.message(track::counter, Message{});
      });
  }

  void origin(const std::vector<std::pair<std::string, std::string>>& made_by) {
    const std::uint64_t uuid = counter_uuid(timeline_.counters.size());
    put_track(uuid, rows_.groups.size(), [](Message& m) { m.text(track::name, "made by"); });
    event_.clear();
    for (const auto& [name, value] : made_by) {
      note_.clear();
      note_.text(note::own_name, name);
      note_.text(note::text, value);
      event_.message(event::note, note_);
    }
    event_.number(event::type, event::instant);
    event_.text(event::own_name, "made by");
    event_.number(event::track, uuid);
    packet_.number(packet::timestamp, 0);
    packet_.number(packet::sequence, 1);
    packet_.message(packet::event, event_);
    put_packet();
  }

  // Perfetto draws a flow from its earliest event on, so a span has an arrow only if its cause begins at an earlier
  // tick.
  bool has_arrow(const Span& s) const {
    return s.cause >= 0 && timeline_.spans[s.cause].start / tick_ < s.start / tick_;
  }

  void causes() {
    for (std::uint32_t s = 0; s < timeline_.spans.size(); ++s)
      if (has_arrow(timeline_.spans[s])) arrows_.emplace_back(timeline_.spans[s].cause, s);
    std::ranges::sort(arrows_);
  }

  struct Moment {
    Time tick;
    std::uint32_t index;
    enum Kind : std::uint8_t { begin, end, sample } kind;
  };

  void events() {
    std::vector<Moment> moments;
    moments.reserve(2 * timeline_.spans.size() + timeline_.samples.size());
    for (const std::uint32_t s : rows_.order) {
      moments.push_back({timeline_.spans[s].start / tick_, s, Moment::begin});
      moments.push_back({timeline_.spans[s].end / tick_, s, Moment::end});
    }
    for (std::uint32_t s = 0; s < timeline_.samples.size(); ++s)
      moments.push_back({timeline_.samples[s].time / tick_, s, Moment::sample});
    // Events of a row are already in the right order, and events that share a tick must keep it.
    std::ranges::stable_sort(moments, {}, &Moment::tick);
    for (const Moment& m : moments) {
      event_.clear();
      if (m.kind == Moment::begin) begin(m.index);
      if (m.kind == Moment::end) end(m.index);
      if (m.kind == Moment::sample) sample(timeline_.samples[m.index]);
      packet_.number(packet::timestamp, static_cast<std::uint64_t>(m.tick));
      packet_.number(packet::sequence, 1);
      packet_.message(packet::event, event_);
      packet_.number(packet::flags, packet::needs_state);
      put_packet();
    }
  }

  void begin(std::uint32_t index) {
    const Span& s = timeline_.spans[index];
    if (s.wait != WaitReason::none) {
      put_note(note::wait, [&](Message& m) { m.text(note::text, name(s.wait)); });
      put_integer(note::waited, s.start - s.ready);
    }
    if (s.bytes != 0) put_note(note::bytes, [&](Message& m) { m.real(note::real, s.bytes); });
    if (s.flops != 0) put_note(note::flops, [&](Message& m) { m.real(note::real, s.flops); });
    if (s.start % tick_ != 0 || s.end % tick_ != 0) {
      put_integer(note::start, s.start);
      put_integer(note::duration, s.end - s.start);
    }
    event_.number(event::type, event::begin);
    event_.number(event::name, s.label + 1ULL);
    event_.number(event::track, row_uuid(rows_.row_of[index]));
    // The id of a flow is the number of the span that it leads to, plus one.
    for (auto a = std::ranges::lower_bound(arrows_, std::pair{std::int64_t{index}, 0U});
         a != arrows_.end() && a->first == index; ++a)
      event_.fixed(event::flow, a->second + 1ULL);
    if (has_arrow(s)) event_.fixed(event::last_flow, index + 1ULL);
  }

  void end(std::uint32_t index) {
    event_.number(event::type, event::end);
    event_.number(event::track, row_uuid(rows_.row_of[index]));
  }

  void sample(const Sample& s) {
    event_.number(event::type, event::counter);
    event_.number(event::track, counter_uuid(s.counter));
    event_.real(event::double_value, s.value);
  }

  template <class Put>
  void put_note(note::Name name, const Put& value) {
    note_.clear();
    note_.number(note::name, name);
    value(note_);
    event_.message(event::note, note_);
  }
  void put_integer(note::Name name, std::int64_t value) {
    put_note(name, [&](Message& m) { m.number(note::integer, static_cast<std::uint64_t>(value)); });
  }

  const Timeline& timeline_;
  const Time tick_;
  const TimelineLayout rows_;
  std::vector<std::pair<std::int64_t, std::uint32_t>> arrows_;  // cause and span
  Message trace_, packet_, event_, note_;                       // members to keep their memory
};

}  // namespace

std::string perfetto(const Timeline& timeline, Time tick,
                     const std::vector<std::pair<std::string, std::string>>& made_by) {
  if (tick < 1) text::refuse("a tick of {} ps: expected at least 1", tick);
  return Writer(timeline, tick).written(made_by);
}

}  // namespace trellis::sim
