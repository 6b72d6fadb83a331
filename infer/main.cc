#include "infer/program.h"

int main(int argc, char** argv) { return phasor_infer(argc, argv); }
