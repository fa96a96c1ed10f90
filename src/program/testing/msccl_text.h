// Small MSCCL XML files for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hemiola::program::msccl {

/// A step with the attributes that most tests do not care about.
struct StepText {
  std::string type = "cpy";
  std::string source = "i 0";
  std::string destination = "o 0";
  int count = 1;
  int depid = -1;
  int deps = -1;
  int hasdep = 0;
};

inline std::string attributes(const char* letter, const std::string& place) {
  const auto space = place.find(' ');
  return std::string(" ") + letter + "buf=\"" + place.substr(0, space) + "\" " + letter + "off=\"" +
         place.substr(space + 1) + "\"";
}

inline std::string tb(int id, int send, int recv, const std::vector<StepText>& steps,
                      int channel = 0) {
  std::string text = "<tb id=\"" + std::to_string(id) + "\" send=\"" + std::to_string(send) +
                     "\" recv=\"" + std::to_string(recv) + "\" chan=\"" + std::to_string(channel) +
                     "\">\n";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepText& step = steps[i];
    text += "<step s=\"" + std::to_string(i) + "\" type=\"" + step.type + "\"" +
            attributes("src", step.source) + attributes("dst", step.destination) + " cnt=\"" +
            std::to_string(step.count) + "\" depid=\"" + std::to_string(step.depid) + "\" deps=\"" +
            std::to_string(step.deps) + "\" hasdep=\"" + std::to_string(step.hasdep) + "\"/>\n";
  }
  return text + "</tb>\n";
}

inline std::string gpu(int id, const std::string& blocks) {
  return "<gpu id=\"" + std::to_string(id) + "\" i_chunks=\"8\" o_chunks=\"8\" s_chunks=\"16\">\n" +
         blocks + "</gpu>\n";
}

inline std::string algo(const std::vector<std::string>& gpus, const std::string& more = "",
                        const std::string& proto = "Simple",
                        const std::string& coll = "allreduce") {
  std::string text =
      "<algo name=\"test\" proto=\"" + proto + "\" nchannels=\"2\" nchunksperloop=\"8\" ngpus=\"" +
      std::to_string(gpus.size()) + "\" coll=\"" + coll + "\" inplace=\"0\"" + more + ">\n";
  for (const std::string& one : gpus) text += one;
  return text + "</algo>\n";
}

inline std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

/// Real files beside the project, where they are.
inline std::string shared_folder() {
  return std::string(HEMIOLA_SOURCE_DIR) + "/../shared/inputs/msccl_xml";
}

}  // namespace hemiola::program::msccl
