// From the text of a kernel and a plan to a Python file that was judged: every step of
// `hemiola compile KERNEL.py --plan PLAN` but the proof of the plan.
#pragma once

#include <optional>
#include <string>

#include "compile/describe/describe.h"
#include "compile/emit/fused_kernel.h"
#include "compile/emit/torch.h"
#include "compile/fuse/fusion.h"
#include "compile/fuse/stores.h"
#include "compile/python/modules.h"

namespace hemiola {
class Monitor;
namespace verify {
struct Proof;
}
}  // namespace hemiola

namespace hemiola::compile {

struct Epilogue;

struct KernelRequest {
  DescribeRequest describe;
  std::optional<std::string> text{};  ///< of the file, which then is only a name
  /// In place of those of @triton.autotune; empty: those.
  std::vector<Configuration> configurations{};
  bool stores_to_peers = false;  ///< tiles that the plan pushes go there straight (fuse/stores.h)
  bool carries = false;          ///< the kernel's programs move the data, between their tiles
};

/// A kernel and what it is called with, for as long as its file is made. Not copied: the fusion
/// points into the description.
class FusedFile {
 public:
  /// Failure as describe(), fuse() and fused_text(). `plan_file`: what messages about the plan
  /// begin with.
  FusedFile(const KernelRequest& request, const plan::Plan& plan, const std::string& plan_file);
  FusedFile(const FusedFile&) = delete;
  FusedFile& operator=(const FusedFile&) = delete;

  /// By launch of the kernel, of which there is one or several.
  const Fusions& fusions() const { return fusions_; }
  const Fusion& fusion() const { return fusions_.front(); }
  const Grids& grids() const { return grids_; }
  /// Whether workgroups that move data find room beside the kernel. Programs that wait keep their
  /// places; as many as there are tiles leave none.
  bool takes_movers() const;
  /// Whether its programs could move the data themselves (KernelRequest::carries).
  bool can_carry() const;
  /// The file, which prove_fused() judges. `output`: its name. Failure as torch_of(), and for what
  /// the kernel makes of a summand that is not linear.
  TorchFile write(TorchOptions options, const std::string& output) const;
  /// Of what write() made: as prove_fused(), with places of the kernel where its text is the cause.
  /// Failure, beside those (exit code 2): a kernel whose tiles store something else than functions
  /// of one product.
  verify::Proof prove(const std::string& output, const std::string& text,
                      const Monitor* monitor = nullptr) const;

 private:
  std::optional<Epilogue> epilogue_of(const std::string& output, const std::string& text) const;
  void add(const Epilogue& epilogue, Fusions& fusions, std::vector<std::string>& lines) const;
  const plan::Tensor& made_by(const Fusion& fusion) const;
  SourceLocation place_of(std::string_view line) const;

  std::string file_;
  Library library_;
  const Module& module_;
  Description description_;
  std::string plan_file_;
  std::string digest_;  ///< of the plan as it was
  Grids grids_;
  std::vector<TileStore> stores_;
  Fusions fusions_;
  bool carries_;
  FusedText text_;
};

/// The rules of a fused text, then the program that it is, proven as `hemiola check FILE.py` does
/// (docs/verify.md). What is not read back is `partial`, with its place as the reason. Failure
/// (exit code 3): a text that is wrong before any order of events is, or whose tiles store other
/// values than its reference() says.
verify::Proof prove_fused(const std::string& file, const std::string& text,
                          const Monitor* monitor = nullptr);

/// What a fused file moves data by, in the words of the lowering's parameter `realization`: copy
/// engines where the plan only copies; where it adds up or calls collectives kernels of PyTorch and
/// of its library, which load and store.
std::string emitted_realization(const plan::Plan& plan);

/// Configurations of a JSON text: a list of objects with values of parameters, "num_warps" and
/// "num_stages". Failure with its place in `file` for anything else.
std::vector<Configuration> read_configurations(const std::string& text, const std::string& file);

/// Those of the request, or else of @triton.autotune, or else one that says nothing.
std::vector<Configuration> configurations_of(const KernelRequest& request);

}  // namespace hemiola::compile
