#include "ccl/rendezvous/pmix_rendezvous.h"

#if __has_include(<pmix.h>)

#include <dlfcn.h>
#include <fmt/format.h>
#include <pmix.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace trellis::ccl {
namespace {

constexpr const char* id_key = "trellis.id";

// The functions of libpmix, looked up by name. The library is never closed, since it keeps threads.
struct Library {
  decltype(&PMIx_Init) init = nullptr;
  decltype(&PMIx_Finalize) finalize = nullptr;
  decltype(&PMIx_Put) put = nullptr;
  decltype(&PMIx_Commit) commit = nullptr;
  decltype(&PMIx_Fence_nb) fence = nullptr;
  decltype(&PMIx_Get_nb) get = nullptr;
  decltype(&PMIx_Error_string) error_string = nullptr;

  Library() {
    void* opened = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (opened == nullptr) opened = dlopen("libpmix.so", RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (opened == nullptr)
      throw std::system_error(ELIBACC, std::generic_category(),
                              fmt::format("PMIx was promised, but its library cannot be opened ({}); set MASTER_ADDR "
                                          "and MASTER_PORT to do without it",
                                          dlerror()));
    const auto find = [opened](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(opened, name));
      if (function == nullptr)
        throw std::system_error(ELIBBAD, std::generic_category(), fmt::format("libpmix has no {}", name));
    };
    find(init, "PMIx_Init");
    find(finalize, "PMIx_Finalize");
    find(put, "PMIx_Put");
    find(commit, "PMIx_Commit");
    find(fence, "PMIx_Fence_nb");
    find(get, "PMIx_Get_nb");
    find(error_string, "PMIx_Error_string");
  }

  void check(pmix_status_t status, const char* call) const {
    if (status != PMIX_SUCCESS)
      throw std::system_error(EPROTO, std::generic_category(), fmt::format("{}: {}", call, error_string(status)));
  }
};

// Result of a call that PMIx completes on its own thread, perhaps after the caller has stopped waiting.
struct Pending {
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<pmix_status_t> status;
  Bytes bytes;
  std::int64_t number = 0;

  static void* handle(const std::shared_ptr<Pending>& p) { return new std::shared_ptr<Pending>(p); }

  static void end(pmix_status_t status, void* handle) { end_with(status, nullptr, handle); }

  static void end_with(pmix_status_t status, pmix_value_t* value, void* handle) {
    const std::unique_ptr<std::shared_ptr<Pending>> owner(static_cast<std::shared_ptr<Pending>*>(handle));
    Pending& p = **owner;
    const std::lock_guard lock(p.mutex);
    if (status == PMIX_SUCCESS && value != nullptr) {
      if (value->type == PMIX_BYTE_OBJECT) {
        const auto* bytes = reinterpret_cast<const std::byte*>(value->data.bo.bytes);
        p.bytes.assign(bytes, bytes + value->data.bo.size);
      }
      if (value->type == PMIX_UINT32) p.number = value->data.uint32;
    }
    p.status = status;
    p.ended.notify_all();
  }

  pmix_status_t wait(const char* for_what, Deadline deadline) {
    std::unique_lock lock(mutex);
    if (!ended.wait_until(lock, deadline, [&] { return status.has_value(); }))
      throw TimedOut(fmt::format("PMIx: {} did not come in time", for_what));
    return *status;
  }
};

// A PMIx session, kept while it is needed. The library counts other users in this process, such as MPI.
class Client {
 public:
  Client() { library_.check(library_.init(&self_, nullptr, 0), "PMIx_Init"); }
  ~Client() { library_.finalize(nullptr, 0); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void put(const char* key, std::span<std::byte> bytes) {
    pmix_value_t value = {};
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = reinterpret_cast<char*>(bytes.data());
    value.data.bo.size = bytes.size();
    library_.check(library_.put(PMIX_GLOBAL, key, &value), "PMIx_Put");
    library_.check(library_.commit(), "PMIx_Commit");
  }

  void fence(Deadline deadline) {
    const pmix_proc_t all = process(PMIX_RANK_WILDCARD);
    pmix_info_t collect = {};
    std::strncpy(collect.key, PMIX_COLLECT_DATA, sizeof collect.key - 1);
    collect.value.type = PMIX_BOOL;
    collect.value.data.flag = true;
    const auto pending = std::make_shared<Pending>();
    library_.check(library_.fence(&all, 1, &collect, 1, Pending::end, Pending::handle(pending)), "PMIx_Fence");
    library_.check(pending->wait("a rank", deadline), "PMIx_Fence");
  }

  // Some servers say just after the fence that a key does not exist, although the fence brings it: then this asks
  // again.
  std::shared_ptr<Pending> get(pmix_rank_t of, const char* key, Deadline deadline) {
    for (const pmix_proc_t from = process(of);;) {
      const auto pending = std::make_shared<Pending>();
      pmix_status_t status = library_.get(&from, key, nullptr, 0, Pending::end_with, Pending::handle(pending));
      if (status == PMIX_SUCCESS) status = pending->wait(key, deadline);
      if (status != PMIX_ERR_NOT_FOUND || of == PMIX_RANK_WILDCARD || Clock::now() >= deadline) {
        library_.check(status, "PMIx_Get");
        return pending;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

 private:
  pmix_proc_t process(pmix_rank_t rank) const {
    pmix_proc_t p = self_;
    p.rank = rank;
    return p;
  }

  Library library_;
  pmix_proc_t self_ = {};
};

}  // namespace

UniqueId id_through_pmix(int rank, UniqueId (*make)(), Deadline deadline) {
  Client client;
  UniqueId id;
  if (rank == 0) {
    id = make();
    client.put(id_key, id.bytes);
  }
  client.fence(deadline);
  if (rank == 0) return id;
  const std::shared_ptr<Pending> got = client.get(0, id_key, deadline);
  if (got->bytes.size() != id.bytes.size())
    throw std::system_error(EPROTO, std::generic_category(),
                            fmt::format("PMIx gave {} bytes for an id of {}", got->bytes.size(), id.bytes.size()));
  std::ranges::copy(got->bytes, id.bytes.begin());
  return id;
}

int ranks_by_pmix() {
  constexpr std::chrono::seconds patience{30};
  Client client;
  return static_cast<int>(client.get(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, Clock::now() + patience)->number);
}

}  // namespace trellis::ccl

#else

namespace trellis::ccl {
namespace {

constexpr const char* absent =
    "this build has no PMIx, as libpmix-dev was not there when it was made: set MASTER_ADDR and MASTER_PORT";

}  // namespace

UniqueId id_through_pmix(int, UniqueId (*)(), Deadline) { throw std::runtime_error(absent); }
int ranks_by_pmix() { throw std::runtime_error(absent); }

}  // namespace trellis::ccl

#endif
