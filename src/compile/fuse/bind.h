// Which operand of a kernel is which tensor of a compute, and what its sizes and strides are. Only
// sources of the fusion include this.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compile/fuse/fusion.h"

namespace hemiola::compile {

/// An operand of the kernel beside the one of the compute.
struct OperandPair {
  const OperandDescription* kernel = nullptr;
  std::int32_t operand = 0;              ///< of the compute
  std::vector<std::size_t> kernel_axis;  ///< by axis of the plan's tensor: axis of the kernel's
};

/// What fuse() knows once operands and axes are paired.
struct Pairing {
  std::vector<OperandPair> pairs;
  std::map<std::string, std::int32_t> compute_axis;  ///< by the kernel's name of an axis
  Names sizes;                      ///< values of parameters: sizes, strides, numbers of tiles
  ParameterValues meanings;         ///< what each of these is of any plan: see FusedArgument
  std::vector<bool> is_transposed;  ///< by pair: the last two axes lie the other way in memory
};

class Pairer {
 public:
  Pairer(const Description& kernel, const plan::Plan& plan, const plan::Compute& compute,
         const FuseRequest& request)
      : kernel_(kernel), plan_(plan), compute_(compute), request_(request) {}

  /// Failure: see fuse().
  Pairing pair();
  /// Of tensors whose rows the kernel takes for as long as those of others, because one parameter
  /// is the size of both: by tensor the strides of rows with that room. Only where room is enough:
  /// no loop of the kernel goes along the axis, and no transfer touches the tensor.
  std::map<std::int32_t, std::vector<std::int64_t>> strides_with_room();

 private:
  void pair_operands();
  void pair_with(std::int32_t operand, const OperandDescription& found);
  bool is_paired(const OperandDescription& operand) const;
  bool is_paired(std::int32_t operand) const;
  void pair_by_names();
  void pair_the_rest();
  std::vector<const OperandDescription*> open_operands(bool made) const;
  bool pair_axes(std::size_t next);
  int like_names(const OperandPair& pair, const std::vector<std::size_t>& chosen) const;
  bool try_axes(std::size_t next, const std::vector<std::size_t>& chosen);
  void pair_operands_and_axes();
  void find_sizes();
  /// use(access, axis of the kernel, axis of the tensor or -1)
  using UseSize = std::function<void(const AccessDescription&, std::size_t, int)>;
  void for_each_size(const OperandPair& pair, const UseSize& use) const;
  void say_sizes(const OperandPair& pair);
  bool has_room(const OperandPair& pair) const;
  bool has_room(const std::string& axis) const;
  void solve_strides();
  bool solve_stride(const std::string& text, std::int64_t stride);
  std::optional<std::int64_t> stride_of(const OperandPair& pair, std::size_t axis) const;
  void find_strides(const OperandPair& pair);
  Names known_numbers() const;
  void say(const std::string& parameter, std::int64_t value, const std::string& meaning,
           const Span& where);
  std::string meaning_of(const char* what, const OperandPair& pair, std::size_t axis) const;
  bool is_operand_of_any(const std::string& tensor) const;
  bool has_operand(const plan::Compute& compute, const std::string& tensor) const;
  std::string bound_as(const OperandDescription& operand) const;
  std::int32_t axis_of(const OperandPair& pair, std::size_t axis) const;
  std::int64_t extent_of(const OperandPair& pair, std::size_t axis) const;
  bool is_looped(const OperandPair& pair, std::size_t axis) const;
  const AxisIndex& index_of(const OperandPair& pair, std::size_t kernel_axis) const;
  const std::string& axis_name(const OperandPair& pair, std::size_t kernel_axis) const;
  bool is_parameter(const std::string& text) const;
  const plan::Tensor& tensor_of(std::int32_t operand) const;
  bool is_moved(std::int32_t tensor) const;
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const;

  const Description& kernel_;
  const plan::Plan& plan_;
  const plan::Compute& compute_;
  const FuseRequest& request_;
  Pairing made_;
  std::map<std::string, std::int64_t> whole_;  ///< by name: extent of axes that are no tiles'
};

/// Whether a loop takes an index over the elements of its tile, block after block: keys of a
/// program that has some of them.
bool goes_over_tile(const Description& kernel, const AxisIndex& index);

/// Why a loop over the elements of a tile of `block` elements along an axis of the kernel does not
/// end where the tile does; empty: it does.
std::string broken_turn(const Description& kernel, std::size_t axis, std::int64_t block,
                        const Names& names);

/// Why a kernel with these values looks at keys that the compute's mask hides; empty: it does not.
std::string missing_mask(const plan::Compute& compute, const FusedConfig& config);

/// Whether tiles of one sum take turns: each reads what those before it left and writes both
/// together, with an atomic that says whose turn it is (split-KV).
bool merges(const Pairing& pairing, const plan::Compute& compute);

/// A FusedArgument::meaning: ("extent", "m").
std::string extent_of_axis(const plan::Compute& compute, std::int32_t axis);

/// Fusion::extras, with their shapes where all accesses say them (fuse/extras.cc). Strides that are
/// parameters get their values in `pairing`. After the axes and the loop.
void find_extras(const plan::Plan& plan, const FuseRequest& request, Pairing& pairing,
                 Fusion& fusion);

/// FusedOperand::follows of all operands, once the loop is chosen. Failure: an access that no mask
/// stops goes beyond the end of its tensor.
void find_followed(const plan::Plan& plan, const Pairing& pairing, Fusion& fusion);

}  // namespace hemiola::compile
