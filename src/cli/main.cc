#include "cli/command_line.h"

int main(int argc, char** argv) {
  return hemiola::cli::command_line(argc, argv);
}
