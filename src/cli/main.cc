#include "hemiola/command.h"

int main(int argc, char** argv) {
  return hemiola::command(argc, argv);
}
