// The reader of device models, and what the shipped ones say.

#include "machine/devices/gpu_model.h"
#include "core/testing/failure.h"
#include "machine/devices/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "core/embedded.h"

namespace hemiola::machine {
namespace {

using ::testing::HasSubstr;

std::string shipped_text(const std::string& name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path == "data/devices/" + name + ".yaml") return std::string(file.content);
  }
  return {};
}

std::string replace(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

using test::message_of;

TEST(GpuModel, the_models_of_the_design_are_shipped) {
  EXPECT_THAT(gpu_model_names(), ::testing::UnorderedElementsAre(
                                     "v100", "a100", "h100", "h100-500w", "h200", "b200", "gb200",
                                     "mi300x", "mi355x", "generic-astra3", "ideal"));
}

TEST(GpuModel, a_shipped_model_is_named_like_its_file) {
  for (const std::string& name : gpu_model_names()) EXPECT_EQ(gpu_model(name).name, name);
}

TEST(GpuModel, every_parameter_of_a_shipped_model_has_a_source) {
  for (const std::string& name : gpu_model_names()) {
    const GpuModel& model = gpu_model(name);
    EXPECT_FALSE(model.description.empty()) << name;
    for (const Parameter& parameter : gpu_parameters()) {
      const auto source = model.sources.find(std::string(parameter.name));
      ASSERT_NE(source, model.sources.end()) << name << " " << parameter.name;
      EXPECT_THAT(source->second,
                  ::testing::MatchesRegex(
                      "(vendor: |measured: |derived: |assumed|by definition|not used).*"))
          << name << " " << parameter.name;
    }
  }
}

TEST(GpuModel, every_value_reads_back_from_its_own_text) {
  for (const std::string& name : gpu_model_names()) {
    const GpuModel& model = gpu_model(name);
    for (const Parameter& parameter : gpu_parameters()) {
      GpuModel other = model;
      const std::string text = parameter.get(model);
      EXPECT_TRUE(parameter.set(other, text)) << name << " " << parameter.name << " " << text;
      EXPECT_EQ(parameter.get(other), text) << name << " " << parameter.name;
    }
  }
}

TEST(GpuModel, each_parameter_changes_a_field_of_its_own) {
  // Setting one parameter must change that one and no other: catches a field named twice in the
  // table.
  for (const Parameter& parameter : gpu_parameters()) {
    GpuModel changed = gpu_model("h100");
    const std::string_view kind = parameter.kind;
    const std::string text = parameter.name == "noc.kind"            ? "mesh"
                             : parameter.name == "noc.arbitration"   ? "fair"
                             : parameter.name == "sync.wait"         ? "monitor"
                             : parameter.name == "line.sector"       ? "64 B"
                             : parameter.name == "sync.flag_spacing" ? "64 B"
                             : parameter.name == "line.size"         ? "256 B"
                             : kind == "flag"                        ? "true"
                             : kind == "count"                       ? "17"
                             : kind == "bytes"                       ? "17 KiB"
                             : kind == "rate"                        ? "17 GB/s"
                             : kind == "time"                        ? "17 ns"
                             : kind == "tiles"                       ? "17x17 32x64"
                                                                     : "17 MHz";
    ASSERT_TRUE(parameter.set(changed, text)) << parameter.name;
    for (const Parameter& other : gpu_parameters()) {
      const bool same = other.get(changed) == other.get(gpu_model("h100"));
      EXPECT_EQ(same, other.name != parameter.name) << parameter.name << " changed " << other.name;
    }
  }
}

// They came later than files of users, and only some ways to wait need them.
TEST(GpuModel, file_without_ways_to_wait_spins) {
  std::string text = shipped_text("h100");
  for (std::string::size_type at; (at = text.find("  sync.wait:")) != std::string::npos;)
    text.erase(at, text.find('\n', at) + 1 - at);
  const GpuModel model = parse_gpu_model(text, "mine.yaml");
  EXPECT_EQ(model.sync_wait, WaitPolicy::spin);
  EXPECT_EQ(model.sources.at("sync.wait"), "not used by this model");
}

TEST(GpuModel, copies_in_l2_partitions_are_there_only_where_a_file_says_so) {
  std::string text = shipped_text("h100");
  const std::string::size_type at = text.find("  l2.copies: {value: false");
  ASSERT_NE(at, std::string::npos);
  std::string with = text;
  with.replace(with.find("false", at), 5, "true");
  EXPECT_TRUE(parse_gpu_model(with, "mine.yaml").l2_copies);
  text.erase(at, text.find('\n', at) + 1 - at);
  EXPECT_FALSE(parse_gpu_model(text, "mine.yaml").l2_copies);
}

TEST(GpuModel, round_numbers_of_the_data_sheets) {
  EXPECT_EQ(gpu_model("h100").cu_count, 132);
  EXPECT_EQ(gpu_model("h100").l2_size, MiB(50));
  EXPECT_EQ(gpu_model("h100").hbm_rate.bytes_per_second, 3'350'000'000'000);
  EXPECT_EQ(gpu_model("a100").cu_count, 108);
  EXPECT_EQ(gpu_model("v100").l2_size, MiB(6));
  EXPECT_EQ(gpu_model("mi300x").cu_count, 304);
  EXPECT_EQ(gpu_model("mi300x").msc_size, MiB(256));
}

TEST(GpuModel, matrix_rates_give_the_dense_bf16_peak_of_the_data_sheet) {
  const auto peak = [](const std::string& name) {
    const GpuModel& model = gpu_model(name);
    return static_cast<double>(model.cu_count * model.cu_matrix_rate) *
           static_cast<double>(model.cu_clock.hertz) / 1e12;
  };
  EXPECT_NEAR(peak("v100"), 125, 1.5);
  EXPECT_NEAR(peak("a100"), 312, 1);
  EXPECT_NEAR(peak("h100"), 989.4, 1);
  EXPECT_NEAR(peak("h200"), 989.4, 1);
  EXPECT_NEAR(peak("b200"), 2250, 10);
  EXPECT_NEAR(peak("gb200"), 2500, 15);
  EXPECT_NEAR(peak("mi300x"), 1307, 2);
  EXPECT_NEAR(peak("mi355x"), 2516, 20);
}

TEST(GpuModel, the_generic_gpu_has_the_448_endpoints_of_the_paper) {
  const GpuModel& model = gpu_model("generic-astra3");
  constexpr std::int64_t kPorts = 32;
  EXPECT_EQ(
      model.cu_count + model.hbm_channels + kPorts + model.noc_mesh_columns * model.noc_mesh_rows,
      448);
  EXPECT_EQ(model.hbm_rate.bytes_per_second, std::int64_t{4} << 40);
  EXPECT_EQ(model.noc_io_rate.bytes_per_second * kPorts, std::int64_t{1} << 40);
  EXPECT_EQ(model.l1_size.count + model.l2_size.count, 0);
}

TEST(GpuModel, nothing_of_the_ideal_gpu_costs_more_than_a_femtosecond) {
  for (const Parameter& parameter : gpu_parameters()) {
    const std::string value = parameter.get(gpu_model("ideal"));
    if (parameter.name == "sync.poll_interval") {
      EXPECT_EQ(value, "1 ns");  // a wait that polls each femtosecond does not end
    } else if (parameter.kind == "time") {
      EXPECT_TRUE(value == "1 fs" || value == "0 fs" || value == "0 ns" || value == "0 s")
          << parameter.name << " " << value;
    }
    if (parameter.kind == "rate") {
      EXPECT_EQ(value, "inf") << parameter.name;
    }
  }
}

TEST(GpuModel, an_unknown_name_lists_the_models) {
  EXPECT_THAT(message_of([] { gpu_model("h10"); }), AllOf(HasSubstr("unknown device model 'h10'"),
                                                          HasSubstr("h100"), HasSubstr("mi355x")));
  EXPECT_THAT(message_of([] { load_gpu_model("no/such.yaml"); }), HasSubstr("no/such.yaml"));
}

TEST(SetParameter, a_value_is_set_and_its_source_says_by_whom) {
  GpuModel model = gpu_model("h100");
  set_parameter(model, "l2.size", "25MiB", kOption);
  EXPECT_EQ(model.l2_size, MiB(25));
  EXPECT_EQ(model.sources.at("l2.size"), "set by an option");
  set_parameter(model, "hbm.rate", "inf");
  EXPECT_TRUE(model.hbm_rate.is_ideal());
}

TEST(SetParameter, an_unknown_name_is_answered_with_the_nearest) {
  GpuModel model = gpu_model("h100");
  EXPECT_THAT(message_of([&] { set_parameter(model, "l2.sise", "25MiB"); }),
              AllOf(HasSubstr("unknown device parameter 'l2.sise'"), HasSubstr("l2.size")));
}

TEST(SetParameter, values_out_of_range_are_errors_and_change_nothing) {
  const GpuModel before = gpu_model("h100");
  const std::pair<const char*, const char*> bad[] = {
      {"cu.count", "0"},         {"cu.count", "-1"},          {"cu.count", "1000000000"},
      {"cu.count", "12 GB"},     {"l2.size", "50"},           {"l2.size", "-1 MiB"},
      {"l2.size", "1 KiB"},      {"l2.latency", "0 ns"},      {"l2.latency", "-5 ns"},
      {"l2.latency", "150"},     {"l2.latency", "2 s"},       {"hbm.rate", "0 GB/s"},
      {"hbm.rate", "fast"},      {"hbm.rate", "-1 GB/s"},     {"cu.clock", "0 GHz"},
      {"noc.kind", "ring"},      {"fabric.forwards", "yes"},  {"line.size", "100 B"},
      {"line.sector", "256 B"},  {"hbm.interleave", "200 B"}, {"hbm.efficiency_permille", "1001"},
      {"cu.wavefront_size", ""}, {"msc.size", "64 GiB"},      {"noc.arbitration", "FIFO"},
  };
  for (const auto& entry : bad) {
    const auto& name = entry.first;
    const auto& value = entry.second;
    GpuModel model = before;
    EXPECT_THAT(message_of([&] { set_parameter(model, name, value); }), ::testing::Ne("no failure"))
        << name << "=" << value;
    for (const Parameter& parameter : gpu_parameters()) {
      EXPECT_EQ(parameter.get(model), parameter.get(before)) << name << " " << parameter.name;
    }
  }
}

RC_GTEST_PROP(SetParameter, any_text_is_taken_or_refused_but_never_half_taken,
              (const std::string& text)) {
  const auto parameters = gpu_parameters();
  const auto& parameter = parameters[*rc::gen::inRange<std::size_t>(0, parameters.size())];
  GpuModel model = gpu_model("mi300x");
  try {
    set_parameter(model, parameter.name, text);
  } catch (const Failure&) {
    RC_ASSERT(parameter.get(model) == parameter.get(gpu_model("mi300x")));
  }
  RC_ASSERT(!check_gpu_model(model).has_errors());
}

TEST(ParseGpuModel, an_unknown_key_is_an_error_with_its_line_and_a_suggestion) {
  const std::string text =
      "name: x\nparameters:\n  l2.sice: {value: 50 MiB, source: \"s\"}\ndescriptoin: y\n";
  EXPECT_THAT(message_of([&] { parse_gpu_model(text, "x.yaml"); }),
              AllOf(HasSubstr("x.yaml:3:3"), HasSubstr("unknown key 'l2.sice'"),
                    HasSubstr("l2.size"), HasSubstr("x.yaml:4:1"), HasSubstr("description")));
}

TEST(ParseGpuModel, a_missing_parameter_is_an_error) {
  const std::string text = replace(shipped_text("h100"), "  cu.count:", "  # cu.count:");
  EXPECT_THAT(message_of([&] { parse_gpu_model(text, "x.yaml"); }),
              HasSubstr("parameter cu.count is missing"));
}

TEST(ParseGpuModel, parameters_of_absent_parts_may_be_missing_and_of_present_ones_not) {
  EXPECT_EQ(gpu_model("h100").msc_size.count, 0);
  EXPECT_EQ(gpu_model("h100").sources.at("msc.rate"), "not used by this model");
  const std::string text = shipped_text("h100") + "  msc.size: 1 MiB\n";
  EXPECT_THAT(message_of([&] { parse_gpu_model(text, "x.yaml"); }),
              AllOf(HasSubstr("msc.rate is missing"), HasSubstr("msc.latency is missing")));
  const std::string mesh = replace(shipped_text("h100"), "value: crossbar", "value: mesh");
  EXPECT_THAT(message_of([&] { parse_gpu_model(mesh, "x.yaml"); }),
              HasSubstr("noc.mesh_columns is missing"));
}

TEST(ParseGpuModel, a_number_without_source_is_assumed) {
  const std::string text = shipped_text("ideal");
  const std::string bare =
      replace(text, "cu.count: {value: 128, source: \"assumed\"}", "cu.count: 64");
  const GpuModel model = parse_gpu_model(bare, "x.yaml");
  EXPECT_EQ(model.cu_count, 64);
  EXPECT_EQ(model.sources.at("cu.count"), "assumed");
}

TEST(ParseGpuModel, a_bad_value_names_its_line_and_what_is_expected) {
  const std::string text = replace(shipped_text("h100"), "value: 50 MiB", "value: 50 MB/s");
  EXPECT_THAT(message_of([&] { parse_gpu_model(text, "x.yaml"); }),
              AllOf(HasSubstr("'50 MB/s' is not a value of l2.size"), HasSubstr("such as 50 MiB")));
}

TEST(ParseGpuModel, damaged_texts_are_errors) {
  for (const char* text :
       {"", "- a\n- b\n", "name: [", "name: x\nname: y\n", "{}", "name: x\nparameters: 3\n",
        "name: x\nparameters:\n  l2.size: {value: [1], source: \"s\"}\n",
        "name: x\nparameters:\n  l2.size: {source: \"s\"}\n", "? [a]\n: b\n", "\x01\x02"}) {
    EXPECT_THAT(message_of([&] { parse_gpu_model(text, "x.yaml"); }), HasSubstr("x.yaml")) << text;
  }
}

TEST(GpuModel, a_link_has_as_many_ports_as_its_bandwidth_takes) {
  GpuModel model = gpu_model("h100");
  set_parameter(model, "noc.io_rate", "100 GB/s");
  set_parameter(model, "noc.io_link", "50 GB/s");
  const auto ports = [&](std::int64_t gigabytes) {
    return model.port_rate({gigabytes * 1'000'000'000}).bytes_per_second / 1'000'000'000;
  };
  EXPECT_EQ(ports(25), 100);
  EXPECT_EQ(ports(50), 100);
  EXPECT_EQ(ports(51), 200);
  EXPECT_EQ(ports(450), 900);
  EXPECT_TRUE(model.port_rate({}).is_ideal());
  set_parameter(model, "noc.io_rate", "inf");
  EXPECT_TRUE(model.port_rate({50}).is_ideal());
}

TEST(GpuModel, a_port_feeds_a_link_as_fast_as_itself_where_a_file_says_nothing) {
  std::string text = shipped_text("a100");
  const auto line = text.find("  noc.io_link:");
  text.erase(line, text.find('\n', line) + 1 - line);
  const GpuModel model = parse_gpu_model(text, "file.yaml");
  EXPECT_EQ(model.noc_io_link.bytes_per_second, model.noc_io_rate.bytes_per_second);
}

}  // namespace
}  // namespace hemiola::machine
