#include "device/libnrt/runtime.h"

#include <algorithm>
#include <cstring>

#include "device/environment_variable.h"
#include "device/fork_safe_singleton.h"

namespace trellis::device::nrt {
namespace {

struct Global {
  std::mutex mutex;
  std::shared_ptr<Runtime> runtime;
  bool was_closed = false;
};

Global& global() {
  return of_this_process([] { return new Global; });
}

template <class Value>
struct Word {
  std::string_view word;
  Value value;
};

constexpr Word<InstanceFamily> families[] = {{"inf1", InstanceFamily::inf1}, {"inf2", InstanceFamily::inf2},
                                             {"trn1", InstanceFamily::trn1}, {"trn1n", InstanceFamily::trn1n},
                                             {"trn2", InstanceFamily::trn2}, {"trn2u", InstanceFamily::trn2u},
                                             {"trn3", InstanceFamily::trn3}};
constexpr Word<InstanceSize> sizes[] = {{"2xlarge", InstanceSize::xl2},   {"3xlarge", InstanceSize::xl3},
                                        {"32xlarge", InstanceSize::xl32}, {"48xlarge", InstanceSize::xl48},
                                        {"24xlarge", InstanceSize::xl24}, {"8xlarge", InstanceSize::xl8}};

template <class Value, std::size_t n>
Value value_of(std::string_view word, const Word<Value> (&all)[n], Value otherwise) {
  for (const auto& one : all)
    if (one.word == word) return one.value;
  return otherwise;
}

void put(char* to, std::size_t room, std::string_view text) {
  std::memset(to, 0, room);
  std::memcpy(to, text.data(), std::min(room - 1, text.size()));
}

}  // namespace

std::string machine_name() {
  const std::string value = value_of_variable("TRELLIS_NRT_MACHINE");
  return value.empty() ? "trn2.48xlarge" : value;
}

Topology machine_topology() { return open("sim:" + machine_name())->topology(); }

InstanceInfo instance_info() {
  const Topology t = machine_topology();
  const std::string name = machine_name();
  const std::size_t dot = name.find('.');
  const std::string size = dot == std::string::npos ? "" : name.substr(dot + 1, name.find(' ', dot) - dot - 1);
  InstanceInfo info{};
  info.family = value_of(name.substr(0, dot), families, value_of(t.chip, families, InstanceFamily::unknown));
  info.size = value_of(size, sizes, InstanceSize::unknown);
  put(info.arch_name, sizeof info.arch_name, t.chip);
  put(info.device_revision, sizeof info.device_revision, "sim");
  return info;
}

Runtime::Runtime() { core(0); }

// Ends the work in flight first, as it uses everything else.
Runtime::~Runtime() { stop(); }

void Runtime::stop() {
  world.stop();
  send_recv.close_all();
  queues.close();
}

std::shared_ptr<Device> Runtime::core(std::int64_t vnc) {
  const std::lock_guard lock(mutex_);
  auto found = cores_.find(vnc);
  if (found != cores_.end()) return found->second;
  const auto first = cores_.find(0);
  const int visible = first == cores_.end() ? 1 : first->second->topology().visible;
  if (vnc < 0 || vnc >= visible)
    refuse(Status::invalid, "core {}: expected 0 to {}, the visible ones", vnc, visible - 1);
  auto device = open("sim:" + machine_name(), {.core = static_cast<int>(vnc)});
  return cores_[vnc] = std::move(device);
}

int Runtime::cores() const {
  const std::lock_guard lock(mutex_);
  return cores_.at(0)->topology().visible;
}

void Runtime::remember(const std::shared_ptr<Storage>& storage) {
  const std::lock_guard lock(mutex_);
  storages_.insert_or_assign(storage->data(), storage);
}

std::shared_ptr<Storage> Runtime::storage_at(const void* va) {
  const auto* const at = static_cast<const std::byte*>(va);
  const std::lock_guard lock(mutex_);
  for (auto after = storages_.upper_bound(at); after != storages_.begin();) {
    const auto found = std::prev(after);
    if (auto storage = found->second.lock()) return at < storage->data() + storage->bytes() ? storage : nullptr;
    after = storages_.erase(found);  // it was freed: memory that begins below it may cover `va` now
  }
  return nullptr;
}

std::int32_t Runtime::free_core() {
  const auto all = models.all();
  for (std::int32_t c = 0; c < cores(); ++c)
    if (std::ranges::none_of(all, [c](const auto& m) { return m->vnc() == c; })) return c;
  refuse(Status::not_enough_cores, "all {} visible cores have a model", cores());
}

void Runtime::set_callback(Callback c) {
  const std::lock_guard lock(mutex_);
  callback_ = c;
}

Runtime::Callback Runtime::callback() const {
  const std::lock_guard lock(mutex_);
  return callback_;
}

std::shared_ptr<Runtime> running() {
  Global& g = global();
  const std::lock_guard lock(g.mutex);
  if (g.runtime) return g.runtime;
  if (g.was_closed) refuse(Status::closed, "nrt_close was called");
  refuse(Status::uninitialized, "nrt_init was not called");
}

std::shared_ptr<Runtime> start_runtime() {
  auto fresh = std::make_shared<Runtime>();
  Global& g = global();
  const std::lock_guard lock(g.mutex);
  if (g.runtime) refuse(Status::invalid, "nrt_init was called before, and not nrt_close");
  g.was_closed = false;
  return g.runtime = std::move(fresh);
}

std::shared_ptr<Runtime> end_runtime() {
  std::shared_ptr<Runtime> ended;
  Global& g = global();
  {
    const std::lock_guard lock(g.mutex);
    if (!g.runtime) return nullptr;
    ended = std::move(g.runtime);
    g.was_closed = true;
  }
  ended->stop();
  return ended;
}

}  // namespace trellis::device::nrt
