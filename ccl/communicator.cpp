#include "ccl/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "ccl/blame.h"
#include "ccl/check.h"
#include "ccl/inside.h"
#include "ccl/mark.h"
#include "ccl/rendezvous/roll_call.h"
#include "ccl/transports/open.h"

namespace trellis::ccl {
namespace {

using Note = Transport::Note;

// To divide themselves.
std::vector<Note> meet(Transport& t, std::span<const Rank> members, std::uint32_t round, const Note& mine,
                       Deadline deadline) {
  try {
    return t.exchange(members, round, mine, deadline);
  } catch (const PeerLost& lost) {
    throw missed(t, lost, "dividing a communicator");
  }
}

// What the leader of a new communicator says to the others, where no other store is at hand: one value, once. Everybody
// says whom it takes to be a member.
class NoteStore : public Store {
 public:
  NoteStore(Transport& t, std::span<const Rank> members, std::uint32_t round)
      : transport_(t), members_(members), round_(round) {}
  void set(std::string_view, std::span<const std::byte> value) override {
    Note note{};
    if (value.size() > most)
      throw std::invalid_argument(fmt::format("a note of {} bytes: expected at most {}", value.size(), most));
    note[0] = static_cast<std::byte>(value.size());
    std::memcpy(note.data() + 1, value.data(), value.size());
    exchange(note, Clock::now() + std::chrono::seconds(30));
  }
  Bytes get(std::string_view, Deadline deadline) override {
    const Note note = exchange({}, deadline);
    return {note.begin() + 1, note.begin() + 1 + static_cast<std::ptrdiff_t>(note[0])};
  }
  std::int64_t add(std::string_view key, std::int64_t) override {
    throw std::logic_error(fmt::format("a note can't count '{}'", key));
  }

 private:
  using Members = std::uint64_t;  // a hash of who they are, at the end of a note
  static constexpr std::size_t members_at = sizeof(Note) - sizeof(Members);
  static constexpr std::size_t most = members_at - 1;

  // The leader's.
  Note exchange(Note mine, Deadline deadline) {
    Members members = members_.size();
    for (const Rank r : members_) members = mixed(members, static_cast<Members>(r));
    std::memcpy(mine.data() + members_at, &members, sizeof members);
    const std::vector<Note> notes = meet(transport_, members_, round_, mine, deadline);
    for (std::size_t i = 0; i < notes.size(); ++i)
      if (std::memcmp(notes[i].data() + members_at, &members, sizeof members) != 0)
        throw Mismatch(members_[i], fmt::format("rank {} makes a communicator of other ranks than rank {} does: "
                                                "expected the same list on each of them",
                                                members_[i], transport_.rank()));
    return notes.front();
  }

  Transport& transport_;
  std::span<const Rank> members_;
  std::uint32_t round_;
};

// check() would speak of the root and the peer of a send_recv, of which the caller has named one.
void expect_end(const char* word, const void* data, std::size_t count, Rank peer, Rank ranks) {
  if (peer < 0 || peer >= ranks)
    throw std::invalid_argument(fmt::format("{}: peer {}; expected 0 to {}", word, peer, ranks - 1));
  if (data == nullptr && count != 0)
    throw std::invalid_argument(fmt::format("{}: {} elements at null; expected some memory", word, count));
}

struct Wish {
  std::int32_t color;  // negative: none
  std::int32_t key;
};

}  // namespace

Communicator::Communicator(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}

Communicator::~Communicator() { Group::forget(*inside_); }

std::unique_ptr<Communicator> Communicator::create(std::shared_ptr<Store> store, Rank rank, Rank ranks,
                                                   const Config& config, std::shared_ptr<device::Device> device) {
  if (ranks < 1) throw std::invalid_argument(fmt::format("{} ranks: expected at least 1", ranks));
  if (rank < 0 || rank >= ranks) throw std::invalid_argument(fmt::format("rank {}: expected 0 to {}", rank, ranks - 1));
  if (config.timeout.count() <= 0)
    throw std::invalid_argument(fmt::format("a timeout of {} ms: expected more than 0", config.timeout.count()));
  if (config.wire != kernels::DType::f32 && config.wire != kernels::DType::bf16)
    throw std::invalid_argument(fmt::format("messages of f32 as {}: expected f32 or bf16", name(config.wire)));
  if (!device) device = device::host_of_process();
  const Deadline deadline = Clock::now() + config.timeout;
  const std::string_view way = config.transport.empty() ? usual_transport : config.transport;
  if (ranks > 1)
    call_the_roll(*store, {.mine = rank, .members = ranks, .terms = fmt::format("{} ranks over {}", ranks, way)},
                  deadline);
  auto transport = open_transport(store, {rank, ranks, config, device.get(), deadline});
  return std::unique_ptr<Communicator>(
      new Communicator(std::make_unique<Inside>(config, std::move(device), std::move(store), std::move(transport))));
}

Rank Communicator::rank() const { return inside_->rank(); }
Rank Communicator::ranks() const { return inside_->ranks(); }
const Config& Communicator::config() const { return inside_->config; }
device::Device& Communicator::device() { return *inside_->device; }
std::string_view Communicator::transport() const { return inside_->transport->name(); }

std::unique_ptr<Exposed> Communicator::expose(void* data, std::size_t bytes) {
  if (data == nullptr || bytes == 0)
    throw std::invalid_argument(fmt::format("expose: {} bytes at {}; expected some", bytes, data));
  if (reinterpret_cast<std::uintptr_t>(data) > UINTPTR_MAX - bytes)
    throw std::invalid_argument(fmt::format("expose: {} bytes at {} go past the last address", bytes, data));
  return inside_->transport->expose(data, bytes);
}

std::uint64_t Communicator::operations() const { return inside_->operations; }

std::size_t Communicator::memory_bytes() const {
  return inside_->transport->memory_bytes() + inside_->scratch.bytes() + inside_->scaled.bytes() +
         inside_->recorder.memory_bytes();
}

std::string Communicator::dump() const { return inside_->dump(); }

std::string Communicator::algorithm(const Call& c) const {
  return text_of(inside_->planner.choose(c, check(c, rank(), ranks())));
}

std::exception_ptr Communicator::error() const {
  const std::lock_guard lock(inside_->error_mutex_);
  return inside_->error_;
}

void Communicator::run(const Call& call, device::Stream* stream) {
  if (call.collective == Collective::send_recv) return run(point_of(call), stream);
  if (stream != nullptr || Group::open()) {
    const bool in_place = check(call, rank(), ranks());
    return Group::issue(*inside_, Operation{.call = call, .in_place = in_place}, stream);
  }
  Turns::Turn turn(inside_->turns);
  turn.wait();
  const bool in_place = inside_->check(call);
  inside_->open(call, in_place);
  inside_->run();
}

void Communicator::run(const Point& point, device::Stream* stream) {
  if (!plainly_right(point, rank(), ranks())) check(call_of(point), rank(), ranks());
  if (stream != nullptr || Group::open()) return Group::issue(*inside_, Point(point), stream);
  Turns::Turn turn(inside_->turns);
  turn.wait();
  inside_->open({&point, 1});
  inside_->run();
}

void Communicator::run(const Call& call, const schedule::Schedule& schedule, device::Stream* stream) {
  const bool in_place = check(call, rank(), ranks());
  Group::issue(
      *inside_,
      Operation{.call = call, .in_place = in_place, .planned = inside_->planner.plan(call, in_place, schedule)},
      stream);
}

void Communicator::all_reduce(const void* in, void* out, std::size_t count, kernels::DType type, ReduceOp op,
                              device::Stream* s) {
  run({.collective = Collective::all_reduce, .input = in, .output = out, .count = count, .type = type, .op = op}, s);
}
void Communicator::reduce_scatter(const void* in, void* out, std::size_t count, kernels::DType type, ReduceOp op,
                                  device::Stream* s) {
  run({.collective = Collective::reduce_scatter, .input = in, .output = out, .count = count, .type = type, .op = op},
      s);
}
void Communicator::all_gather(const void* in, void* out, std::size_t count, kernels::DType type, device::Stream* s) {
  run({.collective = Collective::all_gather, .input = in, .output = out, .count = count, .type = type}, s);
}
void Communicator::broadcast(const void* in, void* out, std::size_t count, kernels::DType type, Rank root,
                             device::Stream* s) {
  run({.collective = Collective::broadcast, .input = in, .output = out, .count = count, .type = type, .root = root}, s);
}
void Communicator::reduce(const void* in, void* out, std::size_t count, kernels::DType type, ReduceOp op, Rank root,
                          device::Stream* s) {
  run({.collective = Collective::reduce,
       .input = in,
       .output = out,
       .count = count,
       .type = type,
       .op = op,
       .root = root},
      s);
}
void Communicator::gather(const void* in, void* out, std::size_t count, kernels::DType type, Rank root,
                          device::Stream* s) {
  run({.collective = Collective::gather, .input = in, .output = out, .count = count, .type = type, .root = root}, s);
}
void Communicator::scatter(const void* in, void* out, std::size_t count, kernels::DType type, Rank root,
                           device::Stream* s) {
  run({.collective = Collective::scatter, .input = in, .output = out, .count = count, .type = type, .root = root}, s);
}
void Communicator::all_to_all(const void* in, void* out, std::size_t count, kernels::DType type, device::Stream* s) {
  run({.collective = Collective::all_to_all, .input = in, .output = out, .count = count, .type = type}, s);
}
void Communicator::barrier(device::Stream* s) { run({.collective = Collective::barrier}, s); }
void Communicator::send(const void* in, std::size_t count, kernels::DType type, Rank to, device::Stream* s) {
  expect_end("send", in, count, to, ranks());
  run(Point{.input = in, .count = count, .type = type, .from = rank(), .to = to}, s);
}
void Communicator::recv(void* out, std::size_t count, kernels::DType type, Rank from, device::Stream* s) {
  expect_end("recv", out, count, from, ranks());
  run(Point{.output = out, .count = count, .type = type, .from = from, .to = rank()}, s);
}

void Communicator::finalize() {
  Turns::Turn turn(inside_->turns);
  turn.wait();
  inside_->finish();
}

void Communicator::abort() { inside_->abort(); }

std::unique_ptr<Communicator> Communicator::Inside::child(std::span<const Rank> members) {
  const auto me = static_cast<Rank>(std::ranges::find(members, rank()) - members.begin());
  auto notes = std::make_shared<NoteStore>(*transport, members, ++rounds);
  Config same = config;
  same.transport = std::string(transport->name());
  auto joined =
      open_transport(notes, {me, static_cast<Rank>(members.size()), same, device.get(), Clock::now() + config.timeout});
  return std::unique_ptr<Communicator>(
      new Communicator(std::make_unique<Inside>(same, device, store, std::move(joined))));
}

std::unique_ptr<Communicator> Communicator::split(std::optional<int> color, int key) {
  if (color && *color < 0)
    throw std::invalid_argument(fmt::format("split: color {}; expected 0 or more, or none", *color));
  Turns::Turn turn(inside_->turns);
  turn.wait();
  inside_->check_well();
  const Wish mine{color.value_or(-1), key};
  Note note{};
  std::memcpy(note.data(), &mine, sizeof mine);
  std::vector<Rank> members;
  for (Rank r = 0; r < ranks(); ++r) members.push_back(r);
  const auto notes =
      meet(*inside_->transport, members, ++inside_->rounds, note, Clock::now() + inside_->config.timeout);
  std::vector<std::pair<std::int32_t, Rank>> chosen;
  for (Rank r = 0; r < ranks(); ++r) {
    Wish theirs;
    std::memcpy(&theirs, notes[static_cast<std::size_t>(r)].data(), sizeof theirs);
    if (color && theirs.color == mine.color) chosen.emplace_back(theirs.key, r);
  }
  if (!color) {
    ++inside_->rounds;  // which the others use
    return nullptr;
  }
  std::ranges::sort(chosen);
  members.clear();
  for (const auto& [k, r] : chosen) members.push_back(r);
  return inside_->child(members);
}

std::unique_ptr<Communicator> Communicator::shrink(std::span<const Rank> excluded) {
  std::vector<Rank> members;
  for (Rank r = 0; r < ranks(); ++r)
    if (std::ranges::find(excluded, r) == excluded.end()) members.push_back(r);
  for (Rank r : excluded)
    if (r < 0 || r >= ranks())
      throw std::invalid_argument(fmt::format("shrink: rank {}; expected 0 to {}", r, ranks() - 1));
  if (std::ranges::find(members, rank()) == members.end())
    throw std::invalid_argument(fmt::format("shrink: rank {} excludes itself", rank()));
  Turns::Turn turn(inside_->turns);
  turn.wait();
  inside_->rounds = (inside_->rounds + 16) / 16 * 16;  // some may have been in a split that failed
  return inside_->child(members);
}

}  // namespace trellis::ccl
