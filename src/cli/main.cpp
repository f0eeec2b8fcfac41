// Entry of the program; everything else is in program.cpp, so that tests can link it.
#include "cli/program.hpp"

int main(int argc, char** argv) {
  return cyb::cli::run_program(argc, argv);
}
