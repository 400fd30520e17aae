// Transport between processes of one host. The segment is an unnamed file (memfd), so it is freed with the last process
// that has it open, however that process ends. The kernel lets only processes of the same user open it.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>

#include "ccl/rendezvous/this_machine.h"
#include "ccl/transports/process_handle.h"
#include "ccl/transports/registry.h"
#include "ccl/transports/segment/await_joined.h"
#include "ccl/transports/segment/mapping.h"
#include "kernels/types/fnv1a.h"
#include "net/descriptor.h"
#include "text/refuse.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t slot_bytes = std::size_t{64} << 10;
constexpr std::size_t least_window = std::size_t{4} << 10;
constexpr std::size_t least_shared = std::size_t{32} << 10;  // smallest message to read from the window in part
constexpr std::size_t whole_elements = 64;                   // bytes; the size of every type divides it
constexpr std::size_t least_fetched = std::size_t{256} << 10;

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

// Throws the reason why a peer's file is missing. A dying process's files are closed before its end can be seen: so
// this waits for the end of a process whose main thread ends.
[[noreturn]] void miss(Rank rank, pid_t pid, const std::string& path) {
  constexpr std::chrono::seconds to_die{5};
  const auto process = ProcessHandle::of(pid);
  const bool ending = main_thread_ends(pid);
  if (process->ends_within(ending ? to_die : 0s))
    throw PeerLost(rank, -1, fmt::format("rank {} died before its memory was read", rank));
  const char* const why =
      access("/proc/self/fd", F_OK) != 0 ? "/proc is not mounted, through which processes share memory"
      : ending                           ? "its main thread has ended: expected it to live as long as its communicators"
               : "its process runs, but has no such file: expected ranks in one namespace of process ids";
  throw std::system_error(ENOENT, std::generic_category(),
                          fmt::format("{}: opening the memory of rank {}: {}", path, rank, why));
}

net::Descriptor open_of(Rank rank, pid_t pid, int fd) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  net::Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file && errno == ENOENT) miss(rank, pid, path);
  if (!file) fail(fmt::format("{}: opening the memory of rank {}", path, rank));
  return file;
}

struct Announced {
  std::int32_t pid;
  std::int32_t fd;
  std::uint64_t bytes;
  std::uint64_t identity;  // of the segment, to notice that the descriptor's number is another file's by now
  std::uint64_t host;      // hash of this_host(), which may be as long as the name of a host
};

// Binds the slots that a rank reads to the memory of its NUMA node. This is a hint: if it fails, they stay where they
// were first written.
void bind_to_reader(const Segment& segment, Rank reader) {
  unsigned node = 0;
  constexpr unsigned most = 8 * sizeof(unsigned long);
  if (getcpu(nullptr, &node) != 0 || node >= most) return;
  const unsigned long nodes = 1UL << node;
  const SegmentShape& shape = segment.shape();
  const std::size_t bytes =
      static_cast<std::size_t>(shape.ranks) * static_cast<std::size_t>(shape.lanes) * ring_cells * shape.slot_bytes;
  syscall(SYS_mbind, segment.slot(0, reader, 0, 0), bytes, MPOL_PREFERRED, &nodes, most + 1, 0);
}

// Caller's memory, moved into the device's window.
class InWindow : public Exposed {
 public:
  explicit InWindow(std::unique_ptr<device::Shared> shared) : shared_(std::move(shared)) {}
  std::size_t readable_bytes() const override { return shared_->bytes(); }

 private:
  std::unique_ptr<device::Shared> shared_;
};

class OtherProcesses : public PeerMemoryAccess {
 public:
  OtherProcesses(net::Descriptor file, Mapping mapping, const SegmentShape& shape, const JoinOptions& j)
      : file_(std::move(file)),
        mapping_(std::move(mapping)),
        segment_(mapping_.base(), shape),
        device_(*j.device),
        rank_(j.rank),
        fetches_(j.config.single_copy),
        peers_(static_cast<std::size_t>(j.ranks)) {}

  void prepare() {  // sets what the others read of this rank once it has joined
    segment_.claim(rank_);
    RankArea& mine = segment_.area(rank_);
    const device::Window window = device_.window();
    mine.window_fd.store(window.fd, std::memory_order_relaxed);
    mine.window_bytes.store(window.bytes, std::memory_order_relaxed);
    mine.base.store(reinterpret_cast<std::uint64_t>(segment_.base()), std::memory_order_relaxed);
    segment_.show_cores(rank_);
    bind_to_reader(segment_, rank_);
  }

  // Once all have joined: tells the others whether this rank can read their memory. The kernel may let one process read
  // another's and not the other way round, as a parent its child's where only children may be traced.
  void try_fetching() {
    if (!fetches_) return;
    for (Rank r = 0; r < segment_.shape().ranks; ++r)
      if (!can_fetch(r)) return;
    segment_.area(rank_).fetches.store(1, std::memory_order_release);
  }

  // If only a part of the message lies in shared memory, offers that part, or the part before it to be copied. Shared
  // memory begins and ends at page boundaries but a message may begin anywhere, so the message is cut at the end of an
  // element.
  Offer offer(Rank to, const std::byte* data, std::size_t bytes) override {
    if (bytes < least_window) return {.bytes = bytes};
    const device::InWindow found = device_.find(data, bytes);
    if (found.outside == 0 && found.bytes == bytes) return {Place{PayloadLocation::window, found.offset}, bytes};
    if (found.bytes >= least_shared) {
      if (found.outside == 0)
        return {Place{PayloadLocation::window, found.offset}, found.bytes / whole_elements * whole_elements};
      return {.bytes = std::min(bytes, (found.outside + whole_elements - 1) / whole_elements * whole_elements)};
    }
    if (bytes >= least_fetched && may_fetch(to))
      return {Place{PayloadLocation::address, reinterpret_cast<std::uint64_t>(data)}, bytes};
    return {.bytes = bytes};
  }

  std::size_t readable(Rank by, const std::byte* data, std::size_t bytes, std::size_t message) override {
    const std::size_t in_window = device_.find(data, bytes).bytes;
    if (in_window >= std::min(bytes, least_shared)) return in_window;
    return message >= least_fetched && may_fetch(by) ? bytes : 0;
  }

  std::unique_ptr<Exposed> expose(void* data, std::size_t bytes) override {
    return std::make_unique<InWindow>(device_.share(data, bytes));
  }

  // The peer's bytes in this process; null: they must be fetched. A window for which this process has no addresses
  // (ulimit -v, hundreds of large windows) is read as a file.
  const std::byte* see(Rank from, const Place& place, std::size_t bytes) override {
    if (place.carried != PayloadLocation::window) return nullptr;
    Peer& p = peer(from);
    if (p.window.base() == nullptr && !p.file) {
      net::Descriptor file = window_of(from);
      p.window = Mapping::of(file.number(), segment_.area(from).window_bytes.load(), PROT_READ, &room_for_windows());
      if (p.window.base() == nullptr && errno != ENOMEM) fail(fmt::format("mmap of the window of rank {}", from));
      if (p.window.base() == nullptr) p.file = std::move(file);
    }
    if (p.file) return nullptr;
    if (place.where > p.window.bytes() || bytes > p.window.bytes() - place.where)
      text::refuse("rank {} offers {} bytes at {} of a window of {}", from, bytes, place.where, p.window.bytes());
    return p.window.base() + place.where;
  }

  void fetch(Rank from, const Place& place, std::size_t offset, std::byte* into, std::size_t bytes) override {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t got = fetch_some(from, place, offset + done, into + done, bytes - done);
      if (got < 0 && errno == EINTR) continue;
      // What a rank has withdrawn may no longer be mapped, and the rank may have ended since.
      if (got <= 0 && withdrawn(from)) throw MessageWithdrawn{from};
      if (got < 0 && errno == ESRCH) throw PeerLost(from, -1, fmt::format("rank {} died while it sent", from));
      if (got == 0) errno = EFAULT;  // its window ends before the place
      if (got <= 0) fail(fmt::format("reading the memory of rank {}", from));
      done += static_cast<std::size_t>(got);
    }
  }

  bool alive(Rank r) override {
    Peer& p = peer(r);
    const pid_t pid = segment_.area(r).pid.load(std::memory_order_acquire);
    if (pid == 0 || pid == getpid()) return true;
    const std::lock_guard lock(processes_);
    if (!p.process) p.process = ProcessHandle::of(pid);
    return p.process->runs();
  }

  std::size_t memory_bytes() const override {
    struct stat file = {};
    fstat(file_.number(), &file);
    return static_cast<std::size_t>(file.st_blocks) * 512 / peers_.size();
  }

  const Segment& segment() const { return segment_; }

 private:
  struct Peer {
    Mapping window;
    net::Descriptor file;  // its window's, where that is not mapped
    std::shared_ptr<ProcessHandle> process;
  };
  bool withdrawn(Rank r) const { return segment_.area(r).withdrawn.load(std::memory_order_acquire) != 0; }

  net::Descriptor window_of(Rank from) try {
    const RankArea& area = segment_.area(from);
    return open_of(from, area.pid.load(std::memory_order_acquire), area.window_fd.load());
  } catch (const PeerLost&) {
    if (withdrawn(from)) throw MessageWithdrawn{from};  // before it ended
    throw;
  }

  ssize_t fetch_some(Rank from, const Place& place, std::size_t offset, std::byte* into, std::size_t bytes) {
    if (place.carried == PayloadLocation::window)
      return pread(peer(from).file.number(), into, bytes, static_cast<off_t>(place.where + offset));
    const iovec mine = {into, bytes};
    const iovec theirs = {reinterpret_cast<void*>(place.where + offset), bytes};
    return process_vm_readv(segment_.area(from).pid.load(), &mine, 1, &theirs, 1, 0);
  }
  Peer& peer(Rank r) { return peers_[static_cast<std::size_t>(r)]; }

  bool can_fetch(Rank from) {
    std::byte word[8];
    const iovec mine = {word, sizeof word};
    const iovec theirs = {reinterpret_cast<void*>(segment_.area(from).base.load()), sizeof word};
    return process_vm_readv(segment_.area(from).pid.load(), &mine, 1, &theirs, 1, 0) == sizeof word;
  }
  bool may_fetch(Rank reader) const {
    return fetches_ && segment_.area(reader).fetches.load(std::memory_order_acquire) != 0;
  }

  net::Descriptor file_;
  Mapping mapping_;
  Segment segment_;
  device::Device& device_;
  Rank rank_;
  bool fetches_;
  std::mutex processes_;  // guards Peer::process: another thread asks when a signal's dump is written during a split
  std::vector<Peer> peers_;
};

std::pair<net::Descriptor, Mapping> made(Store& store, const SegmentShape& shape, const std::string& host) {
  net::Descriptor file(memfd_create("trellis-segment", MFD_CLOEXEC));
  if (!file || ftruncate(file.number(), static_cast<off_t>(shape.bytes())) != 0)
    fail(fmt::format("a shared segment of {} bytes", shape.bytes()));
  Mapping mapping(file.number(), shape.bytes(), PROT_READ | PROT_WRITE);
  Segment::begin(mapping.base(), shape);
  const Announced announced{getpid(), file.number(), shape.bytes(), Segment(mapping.base(), shape).header().identity,
                            kernels::fnv1a(host)};
  store.set("segment", std::as_bytes(std::span(&announced, 1)));
  return {std::move(file), std::move(mapping)};
}

// The error for a rank 0 that gave up: it closes its segment, and the descriptor's number may be another file's by now.
constexpr const char* given_up = "rank 0 no longer has the segment that it announced";

net::Descriptor open_announced(const Announced& announced) try {
  return open_of(0, announced.pid, announced.fd);
} catch (const std::system_error& e) {
  if (e.code().value() == ENOENT && access("/proc/self/fd", F_OK) == 0) throw JoinAborted(e.what());
  throw;
}

std::pair<net::Descriptor, Mapping> found(Store& store, Rank rank, const std::string& host, Deadline deadline) {
  const Bytes bytes = store.get("segment", deadline);
  Announced announced;
  if (bytes.size() != sizeof announced)
    throw std::invalid_argument("the shared segment of rank 0 was not made by this version of the library");
  std::memcpy(&announced, bytes.data(), sizeof announced);
  if (kernels::fnv1a(host) != announced.host)
    text::refuse("rank {} runs on another host or in another container than rank 0: shared memory can't join them",
                 rank);
  net::Descriptor file = open_announced(announced);
  struct stat size = {};
  if (fstat(file.number(), &size) != 0 || static_cast<std::uint64_t>(size.st_size) != announced.bytes)
    throw JoinAborted(given_up);
  Mapping mapping(file.number(), announced.bytes, PROT_READ | PROT_WRITE);
  const SegmentShape shape = Segment::read(mapping.base(), mapping.bytes());
  if (Segment(mapping.base(), shape).header().identity != announced.identity) throw JoinAborted(given_up);
  return {std::move(file), std::move(mapping)};
}

std::unique_ptr<Transport> open_shared_memory(std::shared_ptr<Store> store, const JoinOptions& j) {
  const std::string host = this_host(j.config.fabric.host);
  auto [file, mapping] = j.rank == 0
                             ? made(*store, {j.ranks, channel_lanes + 1, slot_bytes, round_bytes_for(j.config)}, host)
                             : found(*store, j.rank, host, j.deadline);
  const SegmentShape shape = Segment::read(mapping.base(), mapping.bytes());
  if (shape.ranks != j.ranks)
    text::refuse("rank {} was told of {} ranks and rank 0 of {}", j.rank, j.ranks, shape.ranks);
  auto others = std::make_unique<OtherProcesses>(std::move(file), std::move(mapping), shape, j);
  const Segment segment = others->segment();
  others->prepare();
  join_all(segment, j, *others);
  others->try_fetching();
  return std::make_unique<SharedTransport>("shared_memory", segment, j.rank, std::move(others));
}

const RegisteredTransport registered({.name = "shared_memory",
                                      .summary = "processes of one host, through memory that they share",
                                      .reach = TransportFactory::Reach::host,
                                      .open = open_shared_memory});

}  // namespace
}  // namespace trellis::ccl
