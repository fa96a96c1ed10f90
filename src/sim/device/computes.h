// Computes, and the steps of a matrix product that a workgroup has under way.
#pragma once

#include <cstdint>

#include "sim/device/device.h"
#include "sim/device/transport.h"

namespace hemiola::sim {

class Host;
class Wavefronts;

class Computes {
 public:
  Computes(Device& device, Transport& transport, Host& host, Wavefronts& wavefronts)
      : device_(device), transport_(transport), host_(host), wavefronts_(wavefronts) {}

  Server& matrix_units(const Workgroup& group);  ///< of its CU
  /// True: the wavefront waits.
  bool compute(std::int32_t wave, const program::Primitive& primitive, std::int64_t now);
  bool post_compute(std::int32_t wave, const program::Primitive& primitive, std::int64_t now);
  void post_loads(std::int32_t wave, const Step& step, std::int64_t now);
  static ProductStep& product_step(Workgroup& group, std::int32_t number);
  void operand_loaded(std::int32_t group, const Request& request, std::int64_t now);
  void computed(std::int32_t group, std::int64_t now);

 private:
  std::int64_t use_matrix_units(const Workgroup& group, Time time, std::int64_t now);
  std::int64_t stages(const Workgroup& group) const;
  void start_computes(std::int32_t group, std::int64_t now);
  std::int64_t limit_power(const Workgroup& group, const ProductStep& step, std::int64_t now);

  Device& device_;
  Transport& transport_;
  Host& host_;
  Wavefronts& wavefronts_;
};

}  // namespace hemiola::sim
