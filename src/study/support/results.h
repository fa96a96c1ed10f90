// What databases of results have in common: processes hand them to each other as bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace hemiola::study::sqlite {

class Connection;  // sqlite.h

/// What messages say of the files of a verb.
struct Words {
  std::string kind;   ///< "a sweep"
  std::string taken;  ///< of a key that is there already: "another process has written a point ..."
  std::string remedy;  ///< what to do about it
};

class Results {
 public:
  /// All of it, for add() of another one with the same head; for databases in memory, whose file is
  /// ":memory:".
  std::string image() const;
  /// The rows of an image; what has the key of a row that is there is left out.
  void add(const std::string& image);

 protected:
  /// `tables`: those with results.
  Results(std::unique_ptr<Connection> connection, std::vector<std::string> tables);
  ~Results();
  const std::string& file() const;

  std::unique_ptr<Connection> connection_;

 private:
  std::vector<std::string> tables_;
};

}  // namespace hemiola::study::sqlite
