// Element types, as libnrt and as kernels/ name them.
#pragma once

#include <optional>

#include "device/nrt/types.h"
#include "kernels/types/dtype.h"

namespace trellis::device {

std::optional<nrt::NrtDType> element_of(kernels::DType);  // none: libnrt has no such type
kernels::DType type_of(nrt::NrtDType);                    // u8, as bytes, where kernels/ has none

}  // namespace trellis::device
