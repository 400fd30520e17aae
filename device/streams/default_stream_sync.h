// A default stream and the streams that it orders, as in CUDA. Work submitted to the default stream waits for the work
// that the other streams hold; work submitted to them afterwards waits for it.
#pragma once

#include <memory>

#include "device/device.h"

namespace trellis::device {

class DefaultStreamSync {
 public:
  explicit DefaultStreamSync(std::shared_ptr<Device>);

  // Always the same one. It is idle only when the other streams are idle too.
  std::shared_ptr<Stream> default_stream() const;
  std::unique_ptr<Stream> stream() const;

 private:
  class Order;
  class Default;
  class Other;
  std::shared_ptr<Order> order_;
  std::shared_ptr<Stream> default_;
};

}  // namespace trellis::device
