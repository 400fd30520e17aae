// A wire: one endpoint's messages, tagged messages and remote writes, without blocking. Nothing arrives in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ccl/transports/libfabric/wire/library.h"
#include "ccl/transports/libfabric/wire/memory_description.h"

namespace trellis::ccl::libfabric {

// An operation under way. It stays in place until its event, or until its wire is destroyed.
struct WireOperation {
  enum class What : std::uint8_t { packet_in, packet_out, piece_in, piece_out };
  fi_context2 space = {};  // for the provider, so it must be the first member
  What what = What::packet_in;
};

struct WireEvent {
  enum class What : std::uint8_t { done, immediate, failed };
  What what = What::done;
  WireOperation* operation = nullptr;  // null for an immediate
  std::uint32_t immediate = 0;         // number of a peer's write whose data are in place now
  int error = 0;
};

// Memory that is registered with a wire.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  virtual void* descriptor() const = 0;
  virtual std::uint64_t key() const = 0;
  virtual std::uint64_t address() const = 0;  // by which a peer names the first byte
};

// Memory of this process that an operation reads or fills.
struct LocalBytes {
  const void* data = nullptr;
  std::size_t bytes = 0;
  void* descriptor = nullptr;
};

struct WriteTarget {
  fi_addr_t peer = FI_ADDR_UNSPEC;
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

struct WireLimits {
  std::size_t inject = 0;        // most bytes of a message that needs no event
  std::size_t message = 0;       // most bytes of a message
  std::size_t piece = 0;         // most bytes of a piece of a large one
  std::size_t outstanding = 0;   // most operations that may be sending at a time
  std::uint32_t places = 4096;   // most grants whose pieces may be on their way to this process
  bool writes = false;           // pieces are remote writes; otherwise tagged messages
  bool registers_local = false;  // memory that it reads or receives into must be registered
  bool device_memory = false;    // memory of devices can be registered
  bool listens = false;          // over TCP: it accepts connections at its address
  std::string provider = {};     // libfabric's name for it
};

class Wire {
 public:
  virtual ~Wire() = default;
  virtual const WireLimits& limits() const = 0;
  virtual std::span<const std::byte> address() const = 0;
  // `peer`: the number that the caller gives the peer, the same in each run of a program.
  virtual fi_addr_t know(std::span<const std::byte> address, std::uint32_t peer) = 0;
  virtual std::unique_ptr<MemoryRegion> region(const MemoryDescription&, bool for_peers) = 0;

  // False: there is no room now, so try again after a poll; or the peer can't be reached, and refusal() has the error.
  virtual bool inject(fi_addr_t, const void* data, std::size_t bytes) = 0;
  virtual bool send(fi_addr_t, const LocalBytes&, WireOperation&) = 0;
  virtual bool write(const WriteTarget&, const LocalBytes&, std::uint32_t immediate, WireOperation&) = 0;
  virtual bool send_tagged(fi_addr_t, const LocalBytes&, std::uint32_t tag, WireOperation&) = 0;
  virtual bool receive(const LocalBytes&, WireOperation&) = 0;
  virtual bool receive_tagged(const LocalBytes&, std::uint32_t tag, WireOperation&) = 0;

  // Nothing is read from or written to this process's memory after this. No other call follows but poll(), which still
  // tells what had come.
  virtual void end() = 0;

  virtual int refusal() const = 0;  // of the last operation that was not taken; 0: there was no room

  virtual std::size_t poll(std::span<WireEvent>) = 0;
  // A descriptor that is readable when an event may have come; none: there is no such thing.
  static constexpr int none = -1, busy = -2;  // busy: there are events now
  virtual int descriptor() = 0;
};

}  // namespace trellis::ccl::libfabric
