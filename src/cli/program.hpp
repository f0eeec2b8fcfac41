// The program: finds the command, parses its options, runs it and turns whatever happened into an
// exit code.
#pragma once

namespace cyb::cli {

/// Exit codes: 0 ok; 1 usage and input; 2 format, graph, config, template; 3 dispatch or
/// unsupported; 4 memory, device, io; 5 cancelled; 6 a check failed.
int run_program(int argc, char** argv);

}  // namespace cyb::cli
