// The stand-in for libnrt.so.1, as the tests use it: as the library of the device "neuron", and by its functions.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "device/conformance/sample_program.h"
#include "device/nrt/library.h"

namespace trellis::device {

// From now on "neuron" is the stand-in on a trn2.48xlarge; errors are not printed.
inline void use_standin(const char* machine = "trn2.48xlarge") {
  setenv("TRELLIS_LIBNRT", TRELLIS_STANDIN, 1);  // NOLINT(concurrency-mt-unsafe): before any other thread
  setenv("TRELLIS_NRT_MACHINE", machine, 1);     // NOLINT(concurrency-mt-unsafe)
  setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);     // NOLINT(concurrency-mt-unsafe)
  setenv("NEURON_RT_EXEC_TIMEOUT", "120", 1);    // NOLINT(concurrency-mt-unsafe)
}

// The first of 400 ports on which no process listens, below those that the system gives out by itself. Tests that run
// at the same time have other process numbers: they begin their search at other ports, and a search does not go on to
// the ports where a neighbour's begins.
inline int free_port() {
  constexpr int first = 10'000, step = 400, places = 55;
  const auto is_free = [](int port) {
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool free = bind(s, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(s);
    return free;
  };
  for (int place = 0; place < places; ++place) {
    const int from = first + (getpid() + place * 17) % places * step;
    bool free = true;
    for (int port = from; port < from + step && free; ++port) free = is_free(port);
    if (free) return from;
  }
  throw std::runtime_error("no 400 free ports in a row from 10000 on");
}
inline void listen_at_free_ports() {
  setenv("TRELLIS_NRT_SENDRECV_PORT", std::to_string(free_port()).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
}

// The library, initialised with nrt_init until the destructor calls nrt_close.
class Standin {
 public:
  explicit Standin(const char* machine = "trn2.48xlarge") {
    use_standin(machine);
    library_ = std::make_unique<nrt::NrtLibrary>(TRELLIS_STANDIN);
    started_ = library_->nrt_init(nrt::Framework::none, "", "");
  }
  ~Standin() { library_->nrt_close(); }
  Standin(const Standin&) = delete;
  Standin& operator=(const Standin&) = delete;
  const nrt::NrtLibrary* operator->() const { return library_.get(); }
  nrt::Status started() const { return started_; }
  std::string why() const { return reinterpret_cast<const char* (*)()>(library_->symbol("trellis_nrt_last_error"))(); }
  std::int64_t time(std::uint32_t core) const {
    std::int64_t out = 0;
    reinterpret_cast<nrt::Status (*)(std::uint32_t, std::int64_t*)>(library_->symbol("trellis_nrt_time"))(core, &out);
    return out;
  }
  nrt::Tensor* tensor(int core, std::size_t bytes, const char* name = nullptr) const {
    nrt::Tensor* out = nullptr;
    library_->nrt_tensor_allocate(core < 0 ? nrt::TensorPlacement::host : nrt::TensorPlacement::device, core, bytes,
                                  name, &out);
    return out;
  }

 private:
  std::unique_ptr<nrt::NrtLibrary> library_;
  nrt::Status started_ = nrt::Status::failure;
};

// The sample program, loaded, with its tensors.
struct LoadedSample {
  explicit LoadedSample(const Standin& n, int core) : standin(n) {
    const auto neff = sample_container();
    n->nrt_load(neff.data(), neff.size(), core, -1, &model);
    n->nrt_allocate_tensor_set(&inputs);
    n->nrt_allocate_tensor_set(&outputs);
    for (const char* name : {"a", "b"}) n->nrt_add_tensor_to_tensor_set(inputs, name, tensor_for(name, core));
    n->nrt_add_tensor_to_tensor_set(outputs, "out", tensor_for("out", core));
  }
  nrt::Tensor* tensor_for(const char* name, int core) {
    tensors.push_back(standin.tensor(core, sample_numbers * sizeof(float), name));
    return tensors.back();
  }
  void put(std::size_t which, float value) const {
    const std::vector<float> values(sample_numbers, value);
    standin->nrt_tensor_write(tensors[which], values.data(), 0, values.size() * sizeof(float));
  }
  float get(std::size_t which) const {
    float value = 0;
    standin->nrt_tensor_read(tensors[which], &value, (sample_numbers - 1) * sizeof(float), sizeof value);
    return value;
  }
  const Standin& standin;
  nrt::Model* model = nullptr;
  nrt::TensorSet *inputs = nullptr, *outputs = nullptr;
  std::vector<nrt::Tensor*> tensors;
};

}  // namespace trellis::device
