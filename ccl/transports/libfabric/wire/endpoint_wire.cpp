#include "ccl/transports/libfabric/wire/endpoint_wire.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include "ccl/transports/libfabric/wire/region_key_pool.h"
#include "ccl/transports/libfabric/wire/registration_request.h"
#include "ccl/transports/libfabric/wire/tcp_defer_accept.h"
#include "net/sha256.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr std::size_t most_events = 16;     // taken at once
constexpr std::size_t queue_events = 4096;  // room for completions that were not taken yet
constexpr int most_key_turns = 100;
constexpr std::size_t usual_piece = std::size_t{1} << 30;

// libfabric 2's FI_OPT_MAX_MSG_SIZE and FI_OPT_INJECT_MSG_SIZE: the limits of messages. The limits in an endpoint's
// attributes are the largest of all kinds of transfers: on EFA, a write may be far larger than a message.
constexpr int max_message_option = 12, max_inject_option = 16;

struct Close {
  template <class Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <class Object>
using Owned = std::unique_ptr<Object, Close>;

class ProviderRegion : public MemoryRegion {
 public:
  ProviderRegion(fid_mr* region, RegionKey key, std::uint64_t address)
      : key_(std::move(key)), region_(region), address_(address) {}
  void* descriptor() const override { return fi_mr_desc(region_.get()); }
  std::uint64_t key() const override { return fi_mr_key(region_.get()); }
  std::uint64_t address() const override { return address_; }
  fid_mr* made() const { return region_.get(); }

 private:
  RegionKey key_;  // given back when the region is closed
  Owned<fid_mr> region_;
  std::uint64_t address_;
};

class Endpoint : public Wire {
 public:
  explicit Endpoint(Info info) : info_(std::move(info)) {
    fid_fabric* fabric = nullptr;
    checked(library().fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    checked(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
    domain_.reset(domain);
    fi_av_attr about_av = {};
    about_av.type = FI_AV_TABLE;
    fid_av* av = nullptr;
    checked(fi_av_open(domain, &about_av, &av, nullptr), "fi_av_open");
    av_.reset(av);
    open_queue();
    fid_ep* ep = nullptr;
    checked(fi_endpoint(domain, info_.get(), &ep, nullptr), "fi_endpoint");
    ep_.reset(ep);
    checked(fi_ep_bind(ep, &queue_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind to a completion queue");
    checked(fi_ep_bind(ep, &av_->fid, 0), "fi_ep_bind to an address vector");
    checked(fi_enable(ep), "fi_enable");
    std::size_t bytes = 0;
    fi_getname(&ep->fid, nullptr, &bytes);
    address_.resize(bytes);
    checked(fi_getname(&ep->fid, address_.data(), &bytes), "fi_getname");
    accept_only_who_speaks(address_);  // strangers' connections must not use up this process's file descriptors
    const auto mode = static_cast<std::uint64_t>(info_->domain_attr->mr_mode);
    if ((mode & FI_MR_PROV_KEY) == 0)
      keys_ = std::make_shared<RegionKeyPool>(info_->domain_attr->mr_key_size, net::random_number());
    const std::size_t message = option(max_message_option, info_->ep_attr->max_msg_size);
    limits_ = {.inject = option(max_inject_option, info_->tx_attr->inject_size),
               .message = std::min(message, usual_piece),
               .piece = std::min(writes(*info_) ? info_->ep_attr->max_msg_size : message, usual_piece),
               .outstanding = std::clamp<std::size_t>(info_->tx_attr->size, 4, 256),
               .writes = writes(*info_),
               .registers_local = (mode & FI_MR_LOCAL) != 0,
               .device_memory = (info_->caps & FI_HMEM) != 0,
               .listens = listens(),
               .provider = info_->fabric_attr->prov_name};
  }

  const WireLimits& limits() const override { return limits_; }
  std::span<const std::byte> address() const override { return address_; }

  fi_addr_t know(std::span<const std::byte> address, std::uint32_t) override {
    fi_addr_t known = FI_ADDR_UNSPEC;
    if (fi_av_insert(av_.get(), address.data(), 1, &known, 0, nullptr) != 1)
      throw failure(FI_EINVAL, "fi_av_insert of a peer's address");
    return known;
  }

  std::unique_ptr<MemoryRegion> region(const MemoryDescription& memory, bool for_peers) override {
    const auto mode = static_cast<std::uint64_t>(info_->domain_attr->mr_mode);
    auto region = registered(memory, for_peers ? FI_REMOTE_WRITE | FI_RECV : FI_SEND | FI_RECV | FI_WRITE,
                             (mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uint64_t>(memory.data) : 0);
    if ((mode & FI_MR_ENDPOINT) != 0) {
      checked(fi_mr_bind(region->made(), &ep_->fid, 0), "fi_mr_bind");
      checked(fi_mr_enable(region->made()), "fi_mr_enable");
    }
    return region;
  }

  bool inject(fi_addr_t to, const void* data, std::size_t bytes) override {
    return posted(fi_inject(ep_.get(), data, bytes, to), "fi_inject");
  }
  bool send(fi_addr_t to, const LocalBytes& b, WireOperation& op) override {
    return posted(fi_send(ep_.get(), b.data, b.bytes, b.descriptor, to, &op), "fi_send");
  }
  bool write(const WriteTarget& to, const LocalBytes& b, std::uint32_t immediate, WireOperation& op) override {
    return posted(fi_writedata(ep_.get(), b.data, b.bytes, b.descriptor, immediate, to.peer, to.address, to.key, &op),
                  "fi_writedata");
  }
  bool send_tagged(fi_addr_t to, const LocalBytes& b, std::uint32_t tag, WireOperation& op) override {
    return posted(fi_tsend(ep_.get(), b.data, b.bytes, b.descriptor, to, tag, &op), "fi_tsend");
  }
  bool receive(const LocalBytes& b, WireOperation& op) override {
    return posted(fi_recv(ep_.get(), const_cast<void*>(b.data), b.bytes, b.descriptor, FI_ADDR_UNSPEC, &op), "fi_recv");
  }
  bool receive_tagged(const LocalBytes& b, std::uint32_t tag, WireOperation& op) override {
    return posted(fi_trecv(ep_.get(), const_cast<void*>(b.data), b.bytes, b.descriptor, FI_ADDR_UNSPEC, tag, 0, &op),
                  "fi_trecv");
  }

  void end() override { ep_.reset(); }
  int refusal() const override { return refusal_; }

  std::size_t poll(std::span<WireEvent> events) override {
    std::array<fi_cq_data_entry, most_events> entries;
    const std::size_t most = std::min(events.size(), entries.size());
    const ssize_t got = fi_cq_read(queue_.get(), entries.data(), most);
    if (got == -FI_EAGAIN) return 0;
    if (got == -FI_EAVAIL) return poll_error(events);
    const auto count = static_cast<std::size_t>(checked(got, "fi_cq_read"));
    for (std::size_t i = 0; i < count; ++i) {
      const fi_cq_data_entry& e = entries[i];
      const bool written = (e.flags & FI_REMOTE_CQ_DATA) != 0;
      events[i] = {.what = written ? WireEvent::What::immediate : WireEvent::What::done,
                   .operation = written ? nullptr : static_cast<WireOperation*>(e.op_context),
                   .immediate = static_cast<std::uint32_t>(e.data)};
    }
    return count;
  }

  int descriptor() override {
    if (descriptor_ < 0) return none;
    if (waits_) return fi_wait(waits_.get(), 0) == -FI_ETIMEDOUT ? descriptor_ : busy;
    fid* waits = &queue_->fid;
    return fi_trywait(fabric_.get(), &waits, 1) == FI_SUCCESS ? descriptor_ : busy;
  }

 private:
  // Opens the completion queue, and its descriptor to sleep on if the provider has one.
  void open_queue() {
    fi_cq_attr about = {};
    about.size = queue_events;
    about.format = FI_CQ_FORMAT_DATA;
    about.wait_obj = FI_WAIT_FD;
    fid_cq* queue = nullptr;
    if (stays_readable()) {
      fi_wait_attr about_waits = {};
      about_waits.wait_obj = FI_WAIT_FD;
      fid_wait* waits = nullptr;
      checked(fi_wait_open(fabric_.get(), &about_waits, &waits), "fi_wait_open");
      waits_.reset(waits);
      about.wait_obj = FI_WAIT_SET;
      about.wait_set = waits;
    }
    if (fi_cq_open(domain_.get(), &about, &queue, nullptr) == 0) {
      queue_.reset(queue);
      fid* const waits = waits_ ? &waits_->fid : &queue->fid;
      if (fi_control(waits, FI_GETWAIT, &descriptor_) != 0) descriptor_ = -1;
      return;
    }
    about.wait_obj = FI_WAIT_NONE;
    checked(fi_cq_open(domain_.get(), &about, &queue, nullptr), "fi_cq_open");
    queue_.reset(queue);
  }

  bool listens() const {
    const std::string_view provider = info_->fabric_attr->prov_name;
    return provider == "net" || provider == "tcp" || provider.starts_with("tcp;");
  }

  // The provider for sockets (`net`, and `tcp` since 1.18) makes the descriptor readable for each event, but fi_trywait
  // never makes it unreadable again, so no waiter would sleep. With a wait set of our own, fi_wait makes it unreadable.
  bool stays_readable() const {
    const std::string_view provider = info_->fabric_attr->prov_name;
    return provider == "net" || (provider == "tcp" && library().version() >= FI_VERSION(1, 18));
  }

  // Tries further keys: the provider may use some for memory of its own.
  std::unique_ptr<ProviderRegion> registered(const MemoryDescription& memory, std::uint64_t access,
                                             std::uint64_t address) {
    for (int turn = 1;; ++turn) {
      RegionKey key(keys_);
      const RegistrationRequest request(memory, access, key.number(), info_->caps, library().version());
      fid_mr* made = nullptr;
      const int result = fi_mr_regattr(domain_.get(), &request.attributes, request.flags, &made);
      if (result == -FI_ENOKEY && keys_ && turn < most_key_turns) continue;
      checked(result, "fi_mr_regattr");
      return std::make_unique<ProviderRegion>(made, std::move(key), address);
    }
  }

  // The endpoint's own limit, where its version of libfabric tells one below the usual.
  std::size_t option(int name, std::size_t usual) {
    std::size_t limit = 0, bytes = sizeof limit;
    if (library().version() < FI_VERSION(2, 0)) return usual;
    if (fi_getopt(&ep_->fid, FI_OPT_ENDPOINT, name, &limit, &bytes) != 0 || bytes != sizeof limit) return usual;
    return std::min(limit, usual);
  }

  std::size_t poll_error(std::span<WireEvent> events) {
    fi_cq_err_entry e = {};
    const ssize_t got = fi_cq_readerr(queue_.get(), &e, 0);
    if (got == -FI_EAGAIN) return 0;
    checked(got, "fi_cq_readerr");
    events[0] = {
        .what = WireEvent::What::failed, .operation = static_cast<WireOperation*>(e.op_context), .error = e.err};
    return 1;
  }

  bool posted(ssize_t result, const char* call) {
    if (result == 0) return true;
    refusal_ = result == -FI_EAGAIN ? 0 : static_cast<int>(-result);
    if (refusal_ != 0 && !concerns_peer(refusal_)) checked(result, call);
    return false;
  }

  static bool concerns_peer(int error) {
    constexpr std::array errors = {FI_ECONNREFUSED, FI_ECONNRESET, FI_ECONNABORTED, FI_ENOTCONN,  FI_EHOSTUNREACH,
                                   FI_ENETUNREACH,  FI_EHOSTDOWN,  FI_ETIMEDOUT,    FI_ESHUTDOWN, EPIPE};
    return std::ranges::find(errors, error) != errors.end();
  }

  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> av_;
  Owned<fid_wait> waits_;  // null: waits on the queue's own descriptor
  Owned<fid_cq> queue_;
  Owned<fid_ep> ep_;
  std::vector<std::byte> address_;
  WireLimits limits_;
  std::shared_ptr<RegionKeyPool> keys_;  // null: the provider chooses them
  int refusal_ = 0;
  int descriptor_ = -1;
};

}  // namespace

std::unique_ptr<Wire> open_endpoint(Info info) { return std::make_unique<Endpoint>(std::move(info)); }

}  // namespace trellis::ccl::libfabric
