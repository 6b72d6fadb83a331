// Hides from a program, by LD_PRELOAD, what the CPU has beyond AVX2: AVX-512, AMX and dot products
// of bytes (VNNI). Linux on x86-64, where /proc/cpuinfo has cpuid_fault.
//
//   cc -O2 -shared -fPIC hide_avx512.c -o hide_avx512.so
//   LD_PRELOAD=$PWD/hide_avx512.so PROGRAM
//
// HIDE_AVX512_KEEP=avx_vnni, in the environment, keeps the feature of that name.
//
// CPUID is made to fault, and the handler of SIGSEGV answers in its place. XGETBV cannot be made to
// fault: it still says that the system saves 512-bit registers. It says nothing about instructions,
// so every program that asks it asks CPUID, too.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { kFeatureLeaf = 7 };  // all that is hidden is in this leaf of CPUID

static const struct Feature {
  const char* name;  // /proc/cpuinfo's, where it has one
  unsigned subleaf;
  int reg;
  int bit;
} kHidden[] = {
    {"avx512f", 0, REG_RBX, 16},
    {"avx512dq", 0, REG_RBX, 17},
    {"avx512ifma", 0, REG_RBX, 21},
    {"avx512pf", 0, REG_RBX, 26},
    {"avx512er", 0, REG_RBX, 27},
    {"avx512cd", 0, REG_RBX, 28},
    {"avx512bw", 0, REG_RBX, 30},
    {"avx512vl", 0, REG_RBX, 31},
    {"avx512vbmi", 0, REG_RCX, 1},
    {"avx512_vbmi2", 0, REG_RCX, 6},
    {"avx512_vnni", 0, REG_RCX, 11},
    {"avx512_bitalg", 0, REG_RCX, 12},
    {"avx512_vpopcntdq", 0, REG_RCX, 14},
    {"avx512_4vnniw", 0, REG_RDX, 2},
    {"avx512_4fmaps", 0, REG_RDX, 3},
    {"avx512_vp2intersect", 0, REG_RDX, 8},
    {"amx_bf16", 0, REG_RDX, 22},
    {"avx512_fp16", 0, REG_RDX, 23},
    {"amx_tile", 0, REG_RDX, 24},
    {"amx_int8", 0, REG_RDX, 25},
    {"avx_vnni", 1, REG_RAX, 4},
    {"avx512_bf16", 1, REG_RAX, 5},
    {"amx_fp16", 1, REG_RAX, 21},
    {"avx_ifma", 1, REG_RAX, 23},
    {"avx_vnni_int8", 1, REG_RDX, 4},
    {"avx_ne_convert", 1, REG_RDX, 5},
    {"amx_complex", 1, REG_RDX, 8},
    {"avx_vnni_int16", 1, REG_RDX, 10},
    {"avx10", 1, REG_RDX, 19},
};

static struct sigaction program_action;  // what the program does at SIGSEGV
static const char* kept = "";

static long set_cpuid_allowed(int allowed) {
  return syscall(SYS_arch_prctl, ARCH_SET_CPUID, allowed);  // of this thread and those it starts
}

static void answer_cpuid(greg_t* regs) {
  const unsigned leaf = (unsigned)regs[REG_RAX], subleaf = (unsigned)regs[REG_RCX];
  unsigned eax, ebx, ecx, edx;
  set_cpuid_allowed(1);
  __cpuid_count(leaf, subleaf, eax, ebx, ecx, edx);
  set_cpuid_allowed(0);
  regs[REG_RAX] = eax;
  regs[REG_RBX] = ebx;
  regs[REG_RCX] = ecx;
  regs[REG_RDX] = edx;
  for (size_t i = 0; leaf == kFeatureLeaf && i < sizeof kHidden / sizeof *kHidden; ++i) {
    const struct Feature* feature = &kHidden[i];
    if (feature->subleaf != subleaf || strcmp(feature->name, kept) == 0) continue;
    regs[feature->reg] &= ~(1LL << feature->bit);
  }
}

static void on_fault(int number, siginfo_t* info, void* context) {
  static const unsigned char kCpuid[] = {0x0f, 0xa2};
  greg_t* regs = ((ucontext_t*)context)->uc_mcontext.gregs;
  // SI_KERNEL: a protection fault, as CPUID's is; the instruction itself can be read.
  if (info->si_code == SI_KERNEL && memcmp((void*)regs[REG_RIP], kCpuid, sizeof kCpuid) == 0) {
    answer_cpuid(regs);
    regs[REG_RIP] += sizeof kCpuid;
  } else if (program_action.sa_handler == SIG_DFL || program_action.sa_handler == SIG_IGN) {
    signal(number, SIG_DFL);  // faults again, and ends the program
  } else {
    program_action.sa_sigaction(number, info, context);
  }
}

extern int __sigaction(int, const struct sigaction*, struct sigaction*);  // glibc's own

// Keeps the program from replacing the handler.
int sigaction(int number, const struct sigaction* action, struct sigaction* old) {
  if (number != SIGSEGV) return __sigaction(number, action, old);
  const struct sigaction before = program_action;
  if (action) program_action = *action;
  if (old) *old = before;
  return 0;
}

__attribute__((constructor)) static void start(void) {
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  action.sa_sigaction = on_fault;
  if (getenv("HIDE_AVX512_KEEP")) kept = getenv("HIDE_AVX512_KEEP");
  if (__sigaction(SIGSEGV, &action, &program_action) != 0 || set_cpuid_allowed(0) != 0) {
    fputs("hide_avx512: CPUID cannot fault here (no cpuid_fault in /proc/cpuinfo)\n", stderr);
    _exit(1);
  }
}
