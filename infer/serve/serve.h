// The server as a command; absent without PHASOR_BUILD_SERVE.
#pragma once

namespace infer {

int serve(int argc, char** argv);

}  // namespace infer
