#include "device/neuron/tensor_view.h"

namespace trellis::device {

TensorView::TensorView(const NeuronRuntime& r, const TensorsByAddress& tensors, const void* data, std::size_t bytes,
                       const std::string& name)
    : library_(r.library()) {
  if (const auto in = tensors.find(data, bytes)) {
    r.call(library_.nrt_tensor_allocate_slice, "nrt_tensor_allocate_slice", in->tensor, in->offset, bytes, name.c_str(),
           &tensor_);
    return;
  }
  r.call(library_.nrt_tensor_allocate_empty, "nrt_tensor_allocate_empty", name.c_str(), &tensor_);
  try {
    r.call(library_.nrt_tensor_attach_buffer, "nrt_tensor_attach_buffer", tensor_, const_cast<void*>(data), bytes);
  } catch (...) {
    library_.nrt_tensor_free(&tensor_);
    throw;
  }
}

TensorView::~TensorView() {
  if (tensor_ != nullptr) library_.nrt_tensor_free(&tensor_);
}

}  // namespace trellis::device
