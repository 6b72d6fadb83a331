// The server as a command; absent without PHASOR_BUILD_SERVE.
#pragma once

namespace infer {

class CommandLine;

int serve(CommandLine& line);

}  // namespace infer
