// Decodes the trace with a reader of its own, which shares nothing with the writer but the public field numbers.
#include "sim/hardware/timeline/perfetto.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <tuple>

#include "tests/sim/timeline/example.h"

namespace trellis::sim {
namespace {

// A message's values by field, in the order of appearance: numbers as they are, texts and messages as bytes.
struct Fields {
  explicit Fields(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::uint64_t key = varint(bytes);
      const auto field = static_cast<int>(key >> 3);
      if ((key & 7) == 0) {
        numbers.emplace(field, varint(bytes));
      } else if ((key & 7) == 1) {
        std::uint64_t value = 0;
        for (int i = 0; i < 8; ++i) value |= std::uint64_t{static_cast<unsigned char>(bytes.at(i))} << 8 * i;
        numbers.emplace(field, value);
        bytes.remove_prefix(8);
      } else if ((key & 7) == 2) {
        const std::uint64_t size = varint(bytes);
        if (size > bytes.size()) throw std::out_of_range("cut short");
        texts.emplace(field, bytes.substr(0, size));
        bytes.remove_prefix(size);
      } else {
        throw std::out_of_range("wire type");
      }
    }
  }
  static std::uint64_t varint(std::string_view& bytes) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(0));
      bytes.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
  }
  bool has(int field) const { return numbers.contains(field) || texts.contains(field); }
  std::uint64_t number(int field) const { return numbers.find(field)->second; }
  double real(int field) const { return std::bit_cast<double>(number(field)); }
  std::string text(int field) const { return std::string(texts.find(field)->second); }
  Fields message(int field) const { return Fields(texts.find(field)->second); }

  std::multimap<int, std::uint64_t> numbers;
  std::multimap<int, std::string_view> texts;
};

struct Slice {
  std::string group, track, name;
  std::uint64_t start = 0, end = 0;
  std::map<std::string, std::string> notes;
  std::vector<std::uint64_t> flows, last_flows;
};

struct Trace {
  std::vector<Slice> slices;
  std::vector<std::tuple<std::string, std::uint64_t, double>> samples;
};

class Reader {
 public:
  Trace read(std::string_view bytes) {
    const Fields trace(bytes);
    EXPECT_TRUE(trace.numbers.empty());
    for (const auto& [field, packet] : trace.texts) {
      EXPECT_EQ(field, 1);
      read(Fields(packet));
    }
    for (const auto& [uuid, slice] : open_) ADD_FAILURE() << "never ends: " << slice.name;
    return trace_;
  }

 private:
  void read(const Fields& packet) {
    EXPECT_EQ(packet.number(10), 1U);
    EXPECT_EQ(packet.has(12), packet.has(13) && packet.number(13) == 1);
    if (packet.has(12)) read_names(packet.message(12));
    if (packet.has(60)) read_track(packet.message(60));
    if (!packet.has(11)) return;
    EXPECT_EQ(packet.number(13), 2U);
    EXPECT_GE(packet.number(8), last_);
    last_ = packet.number(8);
    const Fields event = packet.message(11);
    const auto type = event.number(9);
    const std::uint64_t track = event.number(11);
    EXPECT_TRUE(tracks_.contains(track));
    if (type == 1) begin(track, event);
    if (type == 2) {
      ASSERT_TRUE(open_.contains(track));
      open_[track].end = last_;
      trace_.slices.push_back(open_[track]);
      open_.erase(track);
    }
    if (type == 4) trace_.samples.emplace_back(tracks_[track].second, last_, event.real(44));
  }

  void begin(std::uint64_t track, const Fields& event) {
    ASSERT_FALSE(open_.contains(track)) << "overlap on " << tracks_[track].second;
    Slice slice{tracks_[track].first, tracks_[track].second, names_.at(event.number(10)), last_, 0, {}, {}, {}};
    for (const auto& [field, value] : event.numbers) {
      if (field == 47) slice.flows.push_back(value);
      if (field == 48) slice.last_flows.push_back(value);
    }
    for (auto [n, end] = event.texts.equal_range(4); n != end; ++n) {
      const Fields note(n->second);
      slice.notes[note_names_.at(note.number(1))] = note.has(6)   ? note.text(6)
                                                    : note.has(4) ? std::to_string(note.number(4))
                                                                  : std::to_string(std::llround(note.real(5)));
    }
    open_.emplace(track, slice);
  }

  void read_names(const Fields& all) {
    for (auto [n, end] = all.texts.equal_range(2); n != end; ++n)
      EXPECT_TRUE(names_.emplace(Fields(n->second).number(1), Fields(n->second).text(2)).second);
    for (auto [n, end] = all.texts.equal_range(3); n != end; ++n)
      EXPECT_TRUE(note_names_.emplace(Fields(n->second).number(1), Fields(n->second).text(2)).second);
  }

  void read_track(const Fields& track) {
    const std::uint64_t uuid = track.number(1);
    EXPECT_GT(uuid, 0U);
    std::pair<std::string, std::string> name;
    if (track.has(3)) {
      groups_[track.message(3).number(1)] = track.message(3).text(6);
      name = {track.message(3).text(6), ""};
    } else if (track.has(4)) {
      name = {groups_.at(track.message(4).number(1)), track.message(4).text(5)};
    } else {
      EXPECT_TRUE(track.has(8));
      name = {tracks_.at(track.number(5)).first, track.text(2)};
    }
    EXPECT_TRUE(tracks_.emplace(uuid, name).second);
  }

  Trace trace_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::string> names_, note_names_, groups_;
  std::map<std::uint64_t, std::pair<std::string, std::string>> tracks_;
  std::map<std::uint64_t, Slice> open_;
};

const Slice& named(const Trace& trace, std::string_view name) {
  for (const Slice& s : trace.slices)
    if (s.name == name) return s;
  throw std::out_of_range(std::string(name));
}

TEST(TimelinePerfetto, HoldsWhatTheTimelineHolds) {
  const Trace trace = Reader().read(perfetto(example()));
  ASSERT_EQ(trace.slices.size(), 7U);
  const Slice& b = named(trace, "load B");
  EXPECT_EQ(b.group, "core 0");
  EXPECT_EQ(b.track, "dma queue 0 (2)");
  EXPECT_EQ(b.start, 500U);
  EXPECT_EQ(b.end, 3'000U);
  EXPECT_EQ(b.notes.at("start, ps"), "500000");
  EXPECT_EQ(b.notes.at("duration, ps"), "2500500");
  EXPECT_EQ(b.notes.at("bytes"), "1000000");
  const Slice& matmul = named(trace, "matmul");
  EXPECT_EQ(matmul.notes.at("waited for"), "semaphore");
  EXPECT_EQ(matmul.notes.at("waited, ps"), "3100500");
  EXPECT_EQ(matmul.notes.at("flops"), "200000000");
  EXPECT_EQ(b.flows, std::vector<std::uint64_t>{3});
  EXPECT_EQ(matmul.last_flows, std::vector<std::uint64_t>{3});
  EXPECT_EQ(matmul.flows, (std::vector<std::uint64_t>{4, 5}));
  EXPECT_EQ(named(trace, "send to 13").notes.at("waited for"), "peer");
  EXPECT_EQ(named(trace, "load A").notes.contains("start, ps"), false);
  EXPECT_EQ(named(trace, "nothing").start, named(trace, "nothing").end);
  EXPECT_EQ(named(trace, "copy <out>").track, example().tracks[3].name);
  using Sample = std::tuple<std::string, std::uint64_t, double>;
  EXPECT_EQ(trace.samples, (std::vector<Sample>{{"bytes in flight", 0, 2e6},
                                                {"depth", 1'000, -0.5},
                                                {"bytes in flight", 2'000, 1e6},
                                                {"bytes in flight", 3'000, 0.0}}));
}

TEST(TimelinePerfetto, EveryPicosecondWithAFineTick) {
  const Trace trace = Reader().read(perfetto(example(), 1));
  EXPECT_EQ(named(trace, "load B").end, 3'000'500U);
  EXPECT_FALSE(named(trace, "load B").notes.contains("start, ps"));
}

TEST(TimelinePerfetto, RandomTimelinesComeBack) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Timeline t;
    for (int i = 0; i < 5; ++i) t.track("group " + std::to_string(i % 3), "track " + std::to_string(i));
    for (int i = 0; i < 300; ++i) {
      Span s{.track = static_cast<std::uint32_t>(random() % 5), .label = t.label_of(std::to_string(i))};
      s.start = static_cast<Time>(random() % 100) * 100;
      s.end = s.start + static_cast<Time>(random() % 5) * 500;
      s.ready = s.start;
      s.cause = i == 0 ? -1 : static_cast<std::int64_t>(random() % i);
      t.add(s);
    }
    const Trace trace = Reader().read(perfetto(t));
    ASSERT_EQ(trace.slices.size(), t.spans.size());
    std::size_t arrows = 0, ends = 0;
    for (const Slice& slice : trace.slices) {
      const Span& s = t.spans[std::stoul(slice.name)];
      EXPECT_EQ(slice.start, s.start / ns);
      EXPECT_EQ(slice.end, s.end / ns);
      EXPECT_EQ(slice.track.substr(0, 7), t.tracks[s.track].name);
      for (const std::uint64_t flow : slice.flows) {
        EXPECT_EQ(t.spans[flow - 1].cause, std::stol(slice.name));
        EXPECT_GT(t.spans[flow - 1].start / ns, s.start / ns);
      }
      arrows += slice.flows.size();
      ends += slice.last_flows.size();
    }
    EXPECT_EQ(arrows, ends);
    EXPECT_GT(arrows, 0U);
    EXPECT_EQ(perfetto(t), perfetto(t));
  }
}

TEST(TimelinePerfetto, RefusesWhatCannotBeDrawn) {
  EXPECT_THROW(perfetto(example(), 0), std::invalid_argument);
  const auto spoilt = [](const std::function<void(Timeline&)>& spoil) {
    Timeline t = example();
    spoil(t);
    return t;
  };
  EXPECT_THROW(perfetto(spoilt([](Timeline& t) { t.spans[1].track = 9; })), std::invalid_argument);
  EXPECT_THROW(perfetto(spoilt([](Timeline& t) { t.spans[1].label = 99; })), std::invalid_argument);
  EXPECT_THROW(perfetto(spoilt([](Timeline& t) { t.spans[1].end = 0; })), std::invalid_argument);
  EXPECT_THROW(perfetto(spoilt([](Timeline& t) { t.spans[1].cause = 7; })), std::invalid_argument);
  EXPECT_THROW(perfetto(spoilt([](Timeline& t) { t.samples[0].counter = 2; })), std::invalid_argument);
  EXPECT_NO_THROW(perfetto(Timeline{}));
}

}  // namespace
}  // namespace trellis::sim
