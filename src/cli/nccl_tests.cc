// The front door for who comes from nccl-tests: its programs and its flags, as its README and
// src/common.cu have them (github.com/NVIDIA/nccl-tests).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "cli/typed.h"
#include "core/diagnostics.h"
#include "core/lists.h"

namespace hemiola::cli {
namespace {

struct Test {
  const char* name;
  const char* program;
};
constexpr Test kTests[] = {{"all_reduce_perf", "all-reduce/nccl"},
                           {"all_gather_perf", "all-gather/nccl"},
                           {"reduce_scatter_perf", "reduce-scatter/nccl"},
                           {"broadcast_perf", "broadcast/nccl"},
                           {"reduce_perf", "reduce/nccl"},
                           {"alltoall_perf", "all-to-all/nccl"},
                           {"sendrecv_perf", "send-recv/direct"}};

/// "all_reduce_perf" of "./build/all_reduce_perf_mpi".
std::string plain(const std::string& word) {
  std::string name = word.substr(word.rfind('/') + 1);
  if (name.ends_with("_mpi")) name.resize(name.size() - 4);
  return name;
}

struct Flag {
  char letter;
  const char* name;
  bool has_effect;  ///< false: of the host program that nccl-tests are
};
constexpr Flag kFlags[] = {
    {'t', "nthreads", true},        {'g', "ngpus", true},        {'b', "minbytes", true},
    {'e', "maxbytes", true},        {'i', "stepbytes", true},    {'f', "stepfactor", true},
    {'n', "iters", true},           {'w', "warmup_iters", true}, {'o', "op", true},
    {'d', "datatype", true},        {'r', "root", true},         {'c', "check", true},
    {'G', "cudagraph", true},       {'m', "agg_iters", false},   {'p', "parallel_init", false},
    {'z', "blocking", false},       {'y', "stream_null", false}, {'T', "timeout", false},
    {'C', "report_cputime", false}, {'a', "average", false},     {'R', "local_register", false},
    {'N', "run_cycles", false}};

[[noreturn]] void wrong_flag(const std::string& flag, const std::string& what,
                             const std::string& hint) {
  throw Failure(what, {.file = flag}, hint);
}

class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : words_(words) {}

  Typed read() {
    const std::string name = plain(words_.front());
    const auto* test = std::find_if(std::begin(kTests), std::end(kTests),
                                    [&](const Test& one) { return name == one.name; });
    if (test == std::end(kTests)) {
      throw Failure("there is no '" + name + "' here", {},
                    "there are: " + joined(names_of(kTests)));
    }
    made_.words = {"run", test->program};
    split();
    machine();
    sizes();
    operation();
    repetitions();
    if (number('r').value_or(0) != 0)
      wrong_flag("-r", "the root is rank 0 here", "leave it out: ranks of a machine are alike");
    if (number('c').value_or(1) == 0) made_.words.emplace_back("--no-check");
    if (number('G').value_or(0) > 0) put("--launch", "graph");
    for (const Flag& flag : kFlags)
      if (!flag.has_effect && given(flag.letter) != nullptr)
        made_.notes.push_back(fmt::format(
            "-{} ({}) is of the host program, and changes nothing here", flag.letter, flag.name));
    made_.words.insert(made_.words.end(), own_.begin(), own_.end());
    return std::move(made_);
  }

 private:
  void put(const std::string& option, const std::string& value) {
    made_.words.push_back(option);
    made_.words.push_back(value);
  }

  /// Flags of nccl-tests, and what is for `run` itself.
  void split() {
    for (std::size_t i = 1; i < words_.size(); ++i) {
      const std::string& word = words_[i];
      const bool is_long = word.starts_with("--");
      const std::size_t equals = word.find('=');
      const std::string name = is_long ? word.substr(2, equals - 2) : word.substr(0, 2);
      const auto* flag = std::find_if(std::begin(kFlags), std::end(kFlags), [&](const Flag& one) {
        return is_long ? name == one.name : name == std::string{'-', one.letter};
      });
      if (flag == std::end(kFlags)) {
        own_.push_back(word);
        continue;
      }
      std::string value;
      if (is_long && equals != word.npos)
        value = word.substr(equals + 1);
      else if (!is_long && word.size() > 2)
        value = word.substr(2);
      else if (i + 1 < words_.size())
        value = words_[++i];
      if (value.empty()) wrong_flag(word, "needs a value", fmt::format("for example {} 8", word));
      flags_[flag->letter] = value;
    }
  }
  const std::string* given(char letter) const {
    const auto found = flags_.find(letter);
    return found == flags_.end() ? nullptr : &found->second;
  }

  std::optional<std::int64_t> number(char letter) const {
    const std::string* text = given(letter);
    if (text == nullptr) return std::nullopt;
    return read_count(*text, 0, 1 << 20, {.file = std::string{'-', letter}});
  }

  /// "128M" and "128MB" are 128 MiB, as nccl-tests read them.
  std::int64_t bytes(char letter, std::int64_t otherwise) const {
    const std::string* text = given(letter);
    if (text == nullptr) return otherwise;
    double value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    const std::string unit(end, text->data() + text->size());
    constexpr std::string_view kUnits = "KMGT";
    const std::size_t power =
        unit.empty() ? 0 : kUnits.find(static_cast<char>(unit[0] & ~0x20)) + 1;
    value *= static_cast<double>(std::int64_t{1} << (10 * power));
    if (error != std::errc{} || (!unit.empty() && power == 0) || !(value >= 0) || value > 0x1p42)
      wrong_flag(std::string{'-', letter}, "'" + *text + "' is no size",
                 "for example 8, 64K or 1G");
    return static_cast<std::int64_t>(value);
  }

  bool has_own(std::string_view option) const {
    return std::any_of(own_.begin(), own_.end(), [&](const std::string& word) {
      return word == option || word.starts_with(std::string(option) + '=');
    });
  }

  void machine() {
    if (!has_own("--machine")) {
      put("--machine", "dgx-h100");
      made_.notes.emplace_back("machine dgx-h100; --machine NAME is for another");
    }
    const std::int64_t ranks = number('g').value_or(1) * number('t').value_or(1);
    if (given('g') != nullptr || given('t') != nullptr)
      put("--ranks", std::to_string(ranks));
    else
      made_.notes.emplace_back("all GPUs of the machine; -g N takes N");
  }

  void sizes() {
    constexpr std::int64_t kUsual = std::int64_t{32} << 20, kMost = 4096;
    const std::int64_t first = bytes('b', kUsual), last = bytes('e', kUsual);
    if (first > last)
      wrong_flag("-b", fmt::format("{} B is more than the largest size, {} B", first, last),
                 "-e is the largest size, 32M where it is not given");
    const std::int64_t factor = number('f').value_or(1), step = bytes('i', std::int64_t{1} << 20);
    std::vector<std::string> all;
    for (std::int64_t size = first; size <= last && std::ssize(all) < kMost;) {
      all.push_back(std::to_string(size));
      const std::int64_t next = factor > 1 ? size * factor : size + step;
      if (next <= size) break;
      size = next;
    }
    if (std::ssize(all) >= kMost)
      wrong_flag("-i", fmt::format("more than {} sizes", kMost), "-f 2 doubles");
    put("--size", joined(all, ","));
    made_.words.emplace_back("--round-down");
    places();
  }

  /// Out of place and in place, but for what nccl-tests cannot verify in place, and for what is of
  /// one run.
  void places() {
    const bool has_both =
        !made_.words[1].starts_with("all-to-all") && !made_.words[1].starts_with("send-recv");
    const bool is_one_run = has_own("--trace") || has_own("--record") || has_own("--param");
    if (has_both && !is_one_run) made_.words.emplace_back("--in-place-too");
  }

  void operation() {
    if (const std::string* op = given('o')) {
      if (*op == "avg" || *op == "mulsum") {
        made_.notes.push_back(fmt::format("{} is a sum, scaled on its way: timed as one", *op));
      } else if (*op == "all") {
        wrong_flag("-o", "one run is of one operation", "-o sum, prod, min, max or avg");
      } else {
        put("--op", *op);
      }
    }
    static const std::map<std::string, std::string, std::less<>> kTypes{{"f8e4m3", "fp8_e4m3"},
                                                                        {"f8e5m2", "fp8_e5m2"},
                                                                        {"fp8e4m3", "fp8_e4m3"},
                                                                        {"fp8e5m2", "fp8_e5m2"},
                                                                        {"uint64", "int64"}};
    if (const std::string* type = given('d')) {
      const auto known = kTypes.find(*type);
      if (*type == "all") wrong_flag("-d", "one run is of one type", "-d float, half or bfloat16");
      put("--dtype", known == kTypes.end() ? *type : known->second);
    }
  }

  /// What nccl-tests print is the mean of -n calls after -w others. Calls behind the first are
  /// alike here, so that one is measured unless more are asked for.
  void repetitions() {
    put("--warmup", std::to_string(number('w').value_or(1)));
    const std::int64_t count = number('n').value_or(1);
    put("--iterations", std::to_string(std::max<std::int64_t>(count, 1)));
    if (given('n') == nullptr)
      made_.notes.emplace_back("one call is measured, after one other; -n N measures N");
  }

  const std::vector<std::string>& words_;
  std::map<char, std::string> flags_;
  std::vector<std::string> own_;
  Typed made_;
};

}  // namespace

bool is_nccl_test(const std::string& word) {
  return !word.starts_with('-') && plain(word).ends_with("_perf");
}

Typed nccl_test(const std::vector<std::string>& words) {
  return Reader(words).read();
}

}  // namespace hemiola::cli
