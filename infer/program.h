// All of infer; main() calls it. With PHASOR_INFER_IN_LIBRARY it is in libphasor_c.so.
#pragma once

extern "C" int phasor_infer(int argc, char** argv);
