#include "ccl/transports/segment/shared_transport.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "ccl/transports/segment/in_place_read.h"
#include "ccl/transports/segment/lanes.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::microseconds nap = 10ms;
// Far more than all yields take, unless other programs keep the cores busy: then each yield lasts as long as all their
// turns.
constexpr auto longest_yielding = 20ms;
constexpr std::uint32_t eager = 20;          // polling rounds without a pause, in which messages on their way arrive
constexpr std::uint32_t posts_yields = 100;  // number of yields before it sleeps until something is posted
constexpr int looks = 4;                     // polls in a row of what is waited for; cheaper than trying to advance

std::uint64_t packed(std::int32_t a, std::int32_t b) {
  return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
}

constexpr std::uint64_t running_bit = 1;

// What a rank shows of its waits in other communicators, in one word: the awaited rank (see RankActivity::elsewhere)
// plus one, then three counters that wrap around.
constexpr std::uint64_t place_bits = 0xFFFFFFFF, round_bits = 0xFF;
constexpr int beats_at = 32, moves_at = 40, waits_at = 48;
std::uint16_t round_in(std::uint64_t word, int at) { return static_cast<std::uint16_t>(word >> at & round_bits); }

// Word 4 of a record: the kind of the operation, and whether it runs.
std::uint64_t kind_of(const RankActivity& a) {
  const int what = (a.divides << 6 | a.collective) << 24;
  return packed(a.root, what | a.type << 16 | a.reduction << 8 | a.wire << 1) | (a.running ? running_bit : 0);
}

}  // namespace

SpinPolicy patience_for(Rank ranks, int cores) {
  if (ranks > cores) return {.spins = 0, .yields = 200};
  // Most messages arrive while it spins. After that, other threads, such as those of this rank's other streams, may use
  // the core.
  return {.spins = 250, .yields = 2000};
}

SharedTransport::SharedTransport(std::string_view name, Segment segment, Rank rank,
                                 std::unique_ptr<PeerMemoryAccess> reach)
    : name_(name),
      segment_(segment),
      rank_(rank),
      reach_(std::move(reach)),
      rounds_(segment_, rank, *reach_),
      patience_(patience_for(ranks(), segment_.cores())),
      yielding_(patience_.yields, longest_yielding) {
  prepare_bells();
  const std::size_t count = static_cast<std::size_t>(ranks()) * static_cast<std::size_t>(lanes());
  senders_.resize(count);
  receivers_.resize(count);
}

SharedTransport::~SharedTransport() {
  segment_.area(rank_).left.store(1, std::memory_order_release);
  ring_all();
}

std::size_t SharedTransport::memory_bytes() const {
  const std::lock_guard lock(used_);
  std::size_t sum = reach_->memory_bytes() + (senders_.size() + receivers_.size()) * sizeof(void*) +
                    used_senders_.size() * sizeof(LaneSender);
  for (const LaneReceiver* r : used_receivers_) sum += r->memory_bytes();
  return sum;
}

Sender& SharedTransport::sender(Rank to, int lane) {
  auto& end = senders_[static_cast<std::size_t>(to * lanes() + lane)];
  if (!end) {
    end = std::make_unique<LaneSender>(*this, to, lane);
    const std::lock_guard lock(used_);
    used_senders_.push_back(end.get());
  }
  return *end;
}

Receiver& SharedTransport::receiver(Rank from, int lane) {
  auto& end = receivers_[static_cast<std::size_t>(from * lanes() + lane)];
  if (!end) {
    end = std::make_unique<LaneReceiver>(*this, from, lane);
    const std::lock_guard lock(used_);
    used_receivers_.push_back(end.get());
  }
  return *end;
}

bool SharedTransport::wait(std::uint32_t idle, std::chrono::microseconds most) {
  if (idle < patience_.spins) {
    for (int i = 0; i < looks && !could_advance(); ++i)
      if (idle >= eager) relax();
    return false;
  }
  if (yielding_.goes_on(idle - patience_.spins, Clock::now())) {
    sched_yield();
    return false;
  }
  segment_.area(rank_).bell.sleep(std::min(most, nap), [&] { return !could_advance() && !over(); });
  return true;
}

bool SharedTransport::could_advance() const {
  return rounds_.could_advance() ||
         std::ranges::any_of(used_receivers_, [](const LaneReceiver* r) { return r->could_advance(); }) ||
         std::ranges::any_of(used_senders_, [](const LaneSender* s) { return s->could_advance(); });
}

std::optional<std::uint32_t> SharedTransport::unread(Rank from, int lane) const {
  if (from == rank_) return std::nullopt;
  const auto& end = receivers_[static_cast<std::size_t>(from * lanes() + lane)];
  const std::uint32_t got = end ? end->received() : 0;
  const LaneCell& next = segment_.ring(from, rank_, lane).cells[got % ring_cells];
  if (next.number.load(std::memory_order_acquire) != got + 1) return std::nullopt;
  return next.mark;
}

// The fence keeps these stores after the store of the present version. A reader that began with the version before that
// one reads this record, too: if it sees one of these words, it then also sees the present version, and reads again.
void SharedTransport::show(const RankActivity& a) {
  RankArea& area = segment_.area(rank_);
  const std::uint32_t next = area.version.load(std::memory_order_relaxed) + 1;
  RankArea::Record& record = area.records[next % 2];
  std::atomic_thread_fence(std::memory_order_release);
  record[0].store(a.operation, std::memory_order_relaxed);
  record[1].store(a.count, std::memory_order_relaxed);
  record[2].store(a.heartbeat, std::memory_order_relaxed);
  record[3].store(packed(a.step, a.waits_for), std::memory_order_relaxed);
  record[4].store(kind_of(a), std::memory_order_relaxed);
  record[5].store(std::uint64_t{a.waits} << 32 | a.moves, std::memory_order_relaxed);
  area.version.store(next, std::memory_order_release);
}

// One bit of one word changes and the record is consistent before and after, so the version stays.
void SharedTransport::rest() {
  RankArea& area = segment_.area(rank_);
  std::atomic<std::uint64_t>& kind = area.records[area.version.load(std::memory_order_relaxed) % 2][4];
  kind.store(kind.load(std::memory_order_relaxed) & ~running_bit, std::memory_order_release);
}

// Several threads may write it, each for the communicator in which it waits: the last one counts.
void SharedTransport::show_elsewhere(Rank place, const WaitProgress& news) {
  std::atomic<std::uint64_t>& word = segment_.area(rank_).elsewhere;
  const std::uint64_t before = word.load(std::memory_order_relaxed);
  const auto next = [&](int at, std::uint64_t more) { return ((round_in(before, at) + more) & round_bits) << at; };
  const auto low = static_cast<std::uint64_t>(place + 1) & place_bits;
  word.store(next(beats_at, 1) | next(moves_at, news.moved ? 1 : 0) | next(waits_at, news.begun ? 1 : 0) | low,
             std::memory_order_relaxed);
}

RankActivity SharedTransport::activity(Rank r) const {
  const RankArea& area = segment_.area(r);
  for (;;) {
    const std::uint32_t version = area.version.load(std::memory_order_acquire);
    std::uint64_t word[6];
    for (int i = 0; i < 6; ++i) word[i] = area.records[version % 2][i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (area.version.load(std::memory_order_relaxed) != version) continue;  // this record may be written by now
    const auto low = static_cast<std::uint32_t>(word[4]);
    const std::uint64_t elsewhere = area.elsewhere.load(std::memory_order_relaxed);
    return {.operation = word[0],
            .count = word[1],
            .heartbeat = word[2],
            .heartbeat_elsewhere = round_in(elsewhere, beats_at),
            .step = static_cast<std::int32_t>(word[3] >> 32),
            .waits_for = static_cast<Rank>(static_cast<std::uint32_t>(word[3])),
            .root = static_cast<Rank>(word[4] >> 32),
            .elsewhere = static_cast<Rank>(elsewhere & place_bits) - 1,
            .divides = static_cast<std::uint8_t>(low >> 30),
            .collective = static_cast<std::uint8_t>(low >> 24 & 0x3F),
            .type = static_cast<std::uint8_t>(low >> 16),
            .wire = static_cast<std::uint8_t>(low >> 1 & 0x7F),
            .reduction = static_cast<std::uint8_t>(low >> 8),
            .running = (low & running_bit) != 0,
            .moves = static_cast<std::uint16_t>(word[5]),
            .moves_elsewhere = round_in(elsewhere, moves_at),
            .waits = static_cast<std::uint16_t>(word[5] >> 32),
            .waits_elsewhere = round_in(elsewhere, waits_at)};
  }
}

bool SharedTransport::alive(Rank r) { return !left(r) && reach_->alive(r); }

void SharedTransport::ring_all() {
  for (Rank r = 0; r < ranks(); ++r) segment_.area(r).bell.ring();
}

void SharedTransport::mark_lost(Rank r) {
  std::int32_t none = 0;
  segment_.header().lost.compare_exchange_strong(none, r + 1);
  ring_all();
}

// Set before any memory is freed: a reader that finds it unset after reading has read valid data. Threads of this
// process, which could find the memory unmapped, have ended their reads when this returns.
void SharedTransport::withdraw() {
  segment_.area(rank_).withdrawn.store(1, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (Rank r = 0; reach_->shares_mappings() && r < ranks(); ++r)
    if (r != rank_) InPlaceRead::await_end(segment_.area(r).in_place_reads);
}

void SharedTransport::mark_aborted() {
  aborted_here_.store(true, std::memory_order_relaxed);
  std::int32_t nobody = 0;
  segment_.header().aborted.compare_exchange_strong(nobody, rank_ + 1);
  ring_all();
}

void SharedTransport::post(std::span<const std::byte> bytes) {
  segment_.post(rank_, bytes);
  for (Rank r = 0; r < ranks(); ++r) segment_.area(r).bell.ring_if_sleeping();
}

void SharedTransport::wait_for_posts(std::uint64_t than, std::uint32_t idle) {
  if (idle < posts_yields)
    sched_yield();
  else
    segment_.area(rank_).bell.sleep(1ms, [&] {
      std::uint64_t sum = 0;
      for (Rank r = 0; r < ranks(); ++r) sum += posts(r);
      return sum == than;
    });
}

}  // namespace trellis::ccl
