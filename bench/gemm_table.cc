// A table of measured matrix products against the GEMM model and a roofline: `tools/study gemm`.

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <vector>

#include "core/text.h"
#include "machine/testing/gemm_table.h"

namespace {

using namespace hemiola;
using namespace hemiola::machine;

struct Arguments {
  std::string table;
  std::string gpu = "h100";
  std::vector<DataType> types{DataType::bfloat16, DataType::float32};
  GemmOptions options;
  bool rows = false;
};

// What the model and the roofline were fitted to.
const std::string kFitted = HEMIOLA_SOURCE_DIR "/data/measured/xla_gemm_h100.csv";

constexpr const char* kUsage =
    "usage: gemm_table TABLE.csv [--gpu NAME] [--types bf16,float,...] [--steady] [--cold] "
    "[--rows]\n";

std::vector<DataType> types_of(std::string list) {
  std::vector<DataType> types;
  for (list += ','; !list.empty(); list.erase(0, list.find(',') + 1)) {
    const std::string name = list.substr(0, list.find(','));
    const auto type = parse_data_type(name);
    if (!type) throw Failure("unknown type '" + name + "'");
    types.push_back(*type);
  }
  return types;
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == argc) throw Failure(word + " needs a value", {}, kUsage);
      return argv[++i];
    };
    if (word == "--gpu") {
      arguments.gpu = value();
    } else if (word == "--types") {
      arguments.types = types_of(value());
    } else if (word == "--steady") {
      arguments.options.steady = true;
    } else if (word == "--cold") {
      arguments.options.cold = true;
    } else if (word == "--rows") {
      arguments.rows = true;
    } else if (word[0] != '-' && arguments.table.empty()) {
      arguments.table = word;
    } else {
      throw Failure("unknown argument '" + word + "'", {}, kUsage);
    }
  }
  if (arguments.table.empty()) throw Failure("no table", {}, kUsage);
  return arguments;
}

void print_errors(const std::string& what, const std::vector<GemmRow>& rows,
                  const std::vector<double>& modelled) {
  for (const std::int64_t least : {512, 0}) {
    const GemmErrors errors = gemm_errors(rows, modelled, least);
    if (errors.rows == 0) continue;
    fmt::print("| {} | {} | {} | {:.1f} % | {:.1f} % | {:.1f} % |\n", what,
               least > 0 ? "m, n, k >= 512" : "all", errors.rows, 100 * errors.median,
               100 * errors.geometric_mean, 100 * errors.worst);
  }
}

/// Rows with what both models say.
struct Compared {
  std::vector<GemmRow> rows;
  std::vector<double> modelled;
  std::vector<double> trivial;

  void add(const Compared& other) {
    rows.insert(rows.end(), other.rows.begin(), other.rows.end());
    modelled.insert(modelled.end(), other.modelled.begin(), other.modelled.end());
    trivial.insert(trivial.end(), other.trivial.begin(), other.trivial.end());
  }
  void print(const std::string& name) const {
    print_errors(name + ", model", rows, modelled);
    print_errors(name + ", roofline", rows, trivial);
  }
};

void print_row(const GemmRow& row, const GemmEstimate& found) {
  const GemmShape& s = row.shape;
  const double modelled = found.time.us() + row.launch_us;
  fmt::print("{},{},{},{},{},{:.3f},{:.3f},{:+.1f}%,{}x{},{},{}\n", name_of(s.type), s.batch, s.m,
             s.n, s.k, row.measured_us, modelled, 100 * (modelled / row.measured_us - 1),
             found.tile.m, found.tile.n, found.split_k, found.waves);
}

/// The roofline has the shares of the peaks that the H100 reaches in its fitted rows: those of the
/// type, or of bf16 where there are none.
GemmRoofline roofline_of(DataType type) {
  const auto rows = [](DataType t) { return parse_gemm_table(read_file(kFitted), kFitted, {t}); };
  const auto own = rows(type);
  return fit_roofline(load_gpu_model("h100"), own.empty() ? rows(DataType::bfloat16) : own);
}

void compare(const Arguments& arguments) {
  const GpuModel model = load_gpu_model(arguments.gpu);
  Compared all;
  for (const DataType type : arguments.types) {
    Compared one;
    one.rows = parse_gemm_table(read_file(arguments.table), arguments.table, {type});
    if (one.rows.empty()) continue;
    const GemmRoofline roofline = roofline_of(type);
    for (const GemmRow& row : one.rows) {
      const GemmEstimate found = estimate_gemm(model, row.shape, arguments.options);
      one.modelled.push_back(found.time.us());
      one.trivial.push_back(roofline.time_us(model, row.shape));
      if (arguments.rows) print_row(row, found);
    }
    if (!arguments.rows) one.print(std::string(name_of(type)));
    all.add(one);
  }
  if (!arguments.rows && arguments.types.size() > 1) all.print("together");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments = parse(argc, argv);
    if (arguments.rows) {
      fmt::print("type,batch,m,n,k,measured_us,modelled_us,error,tile,split,waves\n");
    } else {
      fmt::print("| {} | rows | number | median | geometric mean | worst |\n", arguments.gpu);
      fmt::print("| --- | --- | ---: | ---: | ---: | ---: |\n");
    }
    compare(arguments);
  } catch (const hemiola::Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return static_cast<int>(failure.code());
  }
  return 0;
}
