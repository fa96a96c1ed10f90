// What a kernel makes of a product before it stores it, from the text of a fused file.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hemiola::compile {

struct Epilogue {
  /// A function of PyTorch, `epilogue(product, of)`: statements before its result, and the result.
  /// `of`: by name what the rank was given.
  std::vector<std::string> statements;
  std::string result;
  std::vector<std::string> operands;  ///< names of the tensors in it
  /// Of `operands`, those that are added and do nothing else: what sums over ranks may have once.
  std::vector<std::string> added;
  bool is_linear = true;  ///< of a sum it is the sum, but for what is added
  std::string function;   ///< where it is not: the first that makes it so
  std::string line;       ///< ... and the text of its line; empty: it is no call
};

/// Of the first tile of the first launch that stores to `tensor`. Nothing: it stores the product as
/// it is, or nothing that is a function of one product. Failure as read_fused().
std::optional<Epilogue> read_epilogue(const std::string& file, std::string text,
                                      const std::string& tensor);

/// What else such a tile stores than a function of one product at its element.
struct Unusual {
  std::string what;  ///< behind the kernel's name; empty: nothing that anybody knows
  std::string line;  ///< the text of its line in the file
};
/// For a file whose tiles store other values than its reference() says.
Unusual what_is_unusual(const std::string& file, std::string text, const std::string& tensor);

}  // namespace hemiola::compile
