// The names of kernels/digest that this room uses.
#pragma once

#include "kernels/digest/sha256.h"

namespace trellis::ccl {

using kernels::bytes_of;
using kernels::Digest;
using kernels::equal_in_constant_time;
using kernels::fill_random;
using kernels::fresh_secret;
using kernels::hexadecimal;
using kernels::HmacKey;
using kernels::random_number;
using kernels::Sha256;
using kernels::sha256;

}  // namespace trellis::ccl
