// What a fused kernel's tuner may choose: values of the template's parameters and of its lowering,
// and the kernel's configurations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compile/fused/fused_file.h"
#include "machine/machine.h"
#include "plan/template.h"
#include "study/laboratory/settings.h"

namespace hemiola::tune {

/// One thing that points differ in.
struct Dimension {
  std::string name;                 ///< "configuration", or a parameter: "split", "realization"
  std::vector<std::string> values;  ///< as --param takes them; of configurations their numbers
  std::size_t usual = 0;  ///< where the search begins: the default, where it is among them
};

/// By dimension the index of its value.
using Point = std::vector<std::size_t>;

/// What the caller fixes or narrows: by parameter the values that are tried.
using Choices = std::map<std::string, std::vector<std::string>>;

/// All dimensions, in the order in which the search takes them: those that change the plan's tiles
/// and chunks first, then who moves data, then the order.
class Space {
 public:
  /// `sizes`: what is fixed of the template, its sizes among it. Failure at --param for a parameter
  /// that the template and its lowering do not have, and for tiles, which are the kernel's.
  Space(const plan::TemplateInfo& info, const study::Settings& sizes, const Choices& choices,
        std::vector<compile::Configuration> configurations, const machine::Machine& machine);

  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  /// Every point once. Values that mean nothing beside others (workgroups of copy engines, stages
  /// of a configuration that says them) are the first ones.
  std::vector<Point> points() const;
  Point usual() const;
  /// A point with one value changed, as points() has it.
  Point with(Point point, std::size_t dimension, std::size_t value) const;

  /// The value of a dimension that means something at this point; empty: none does.
  std::string value(const Point& point, const std::string& dimension) const;
  /// With the number of stages where the configuration leaves it to the space.
  compile::Configuration configuration(const Point& point) const;

  /// Parameters of the template alone: sizes, chunks, order. Tiles are the default.
  study::Settings plan_parameters(const Point& point) const;
  /// Parameters of the lowering: who moves data, with how many workgroups, stages.
  study::Settings lowering(const Point& point) const;

  /// "BLOCK_M=128 BLOCK_N=64, split 2, copy-engine".
  std::string text(const Point& point) const;

 private:
  void add(std::string name, std::vector<std::string> values, const std::string& usual);
  bool means(const Point& point, std::size_t dimension) const;
  Point canonical(Point point) const;
  bool is_of_template(const std::string& name) const { return info_.parameter(name) != nullptr; }

  const plan::TemplateInfo& info_;
  const machine::Machine& machine_;
  study::Settings sizes_;
  std::vector<compile::Configuration> configurations_;
  std::vector<Dimension> dimensions_;
};

/// By axis of the compute the template's parameter that says its tile: "tile_m"; empty: none does.
/// Found by trying. `parameters`: what plan_parameters() gives of some point.
std::vector<std::string> tile_parameters(const plan::TemplateInfo& info, int ranks,
                                         const study::Settings& parameters,
                                         const machine::Machine* machine);

/// Values of --param "m=1024,2048" apart.
struct Asked {
  Choices choices;                       ///< of what is searched, and of the lowering
  std::vector<study::Settings> buckets;  ///< every combination of what else the template takes
};
/// Failure at --param: a name twice, an empty value.
Asked asked_of(const study::Settings& given, const plan::TemplateInfo& info);

/// "m=1024 n=2048": of a bucket what others do not share, or all of it where there is only one.
std::string bucket_name(const std::vector<study::Settings>& buckets, std::size_t index);

}  // namespace hemiola::tune
