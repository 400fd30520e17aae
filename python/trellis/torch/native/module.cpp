// The Python module of the process group.
#include <torch/csrc/utils/pybind.h>

#include "trellis/torch/native/backend.h"
#include "trellis/torch/native/tensors/window_allocator.h"

namespace {

using trellis::process_group::TrellisBackend;
namespace py = pybind11;

c10::intrusive_ptr<c10d::Backend> create(const c10d::DistributedBackendOptions& given,
                                         const c10::intrusive_ptr<c10d::Backend::Options>& wished) {
  auto options = wished ? c10::make_intrusive<c10d::Backend::Options>(*wished)
                        : c10::make_intrusive<c10d::Backend::Options>("trellis");
  const auto said = std::chrono::duration_cast<std::chrono::milliseconds>(given.timeout);
  const bool by_torch = said == kBackendDefaultTimeout;  // torch passes its default where the caller gave none
  if (!wished || !by_torch) options->timeout = said;
  options->group_name = given.group_id;
  options->global_ranks_in_group.assign(given.global_ranks_in_group.begin(), given.global_ranks_in_group.end());
  return c10::make_intrusive<TrellisBackend>(given.store, given.group_rank, given.group_size, options);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "torch.distributed's backend \"trellis\"";
  py::class_<TrellisBackend, c10d::Backend, c10::intrusive_ptr<TrellisBackend>>(module, "ProcessGroupTrellis")
      .def_property_readonly("options", &TrellisBackend::getBackendOptions)
      .def("dump", &TrellisBackend::dump, py::call_guard<py::gil_scoped_release>())
      .def("_start_time_estimate", &TrellisBackend::begin_estimate)
      .def("_end_time_estimate", &TrellisBackend::end_estimate, py::call_guard<py::gil_scoped_release>());
  module.def("create", &create, py::arg("options"), py::arg("wished").none(true),
             py::call_guard<py::gil_scoped_release>());
  module.def("record_to", &trellis::process_group::record_to, py::arg("folder"), py::arg("rank"), py::arg("ranks"));
  module.def("flight_trace", [] {
    auto* const recorder = trellis::process_group::TorchFlightRecorder::of_process();
    return py::bytes(recorder ? recorder->pickled() : std::string());
  });
  module.def("use_window_for_tensors", &trellis::process_group::use_window_for_tensors, py::arg("on"));
  module.def(
      "empty",
      [](const std::vector<std::int64_t>& sizes, at::ScalarType type) {
        return trellis::process_group::tensor_in_window(sizes, at::TensorOptions(type));
      },
      py::arg("sizes"), py::arg("dtype"));
}
