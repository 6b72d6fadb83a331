// A CPU raises SIGILL at instructions that it lacks; the handler decodes and executes them.
// Quoted names are sections of Intel's Software Developer's Manual.
#include "tests/support/amx_emulator.h"

#if defined(__x86_64__) && defined(__linux__)

#include <asm/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace phasor {
namespace {

void require(bool holds, const char* rule) {
  if (holds) return;
  std::fprintf(stderr, "AMX instruction faults: %s\n", rule);
  std::abort();
}

struct Instruction {
  int opcode, prefix, vvvv;
  int mod, reg, rm;  // of ModRM, with the VEX prefix's bits R and B
  bool has_sib = false;
  int64_t base = 0;   // of the memory operand, with the displacement
  int64_t index = 0;  // scaled: of tiles, the bytes between rows
  int length = 5;
};

template <typename T>
T read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// "Addressing-Mode Encoding of ModR/M and SIB Bytes". `operand` is what follows ModRM.
void decode_address(const uint8_t* operand, int rex_x, int rex_b, const greg_t* registers,
                    Instruction& in) {
  constexpr int kRegisters[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
  int base = in.rm;
  in.has_sib = in.rm % 8 == 4;
  if (in.has_sib) {
    const int sib = *operand++, index = (sib >> 3 & 7) | rex_x << 3;
    base = (sib & 7) | rex_b << 3;
    if (index != 4) in.index = registers[kRegisters[index]] << (sib >> 6);
  }
  require(in.mod != 0 || base % 8 != 5, "an address without a base register is not emulated");
  in.base = registers[kRegisters[base]];
  if (in.mod == 1) in.base += read<int8_t>(operand);
  if (in.mod == 2) in.base += read<int32_t>(operand);
  in.length += in.has_sib + (in.mod == 1 ? 1 : in.mod == 2 ? 4 : 0);
}

/// "The VEX Prefix", of three bytes.
Instruction decode(const uint8_t* code, const greg_t* registers) {
  require(code[0] == 0xc4 && (code[1] & 0x1f) == 2, "not an instruction of AMX");
  require((code[2] & 0x84) == 0, "#UD: VEX.W and VEX.L must be 0");
  const int rex_r = ~code[1] >> 7 & 1, rex_x = ~code[1] >> 6 & 1, rex_b = ~code[1] >> 5 & 1;
  const int modrm = code[4];
  Instruction in = {.opcode = code[3],
                    .prefix = code[2] & 3,
                    .vvvv = ~code[2] >> 3 & 15,
                    .mod = modrm >> 6,
                    .reg = (modrm >> 3 & 7) | rex_r << 3,
                    .rm = (modrm & 7) | rex_b << 3};
  if (in.mod != 3) decode_address(code + 5, rex_x, rex_b, registers, in);
  return in;
}

/// The operand of LDTILECFG. colsb is the bytes of a row; tiles 8 to 15 are reserved.
struct TileConfig {
  uint8_t palette, start_row_and_reserved[15];
  uint16_t colsb[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

class TileUnit {
 public:
  void execute(const Instruction& in) {
    enum { kNone, k66, kF3, kF2 };  // prefixes, as VEX.pp has them
    const auto is = [&](int opcode, int prefix, bool in_memory) {
      return in.opcode == opcode && in.prefix == prefix && (in.mod != 3) == in_memory;
    };
    if (is(0x5c, kF3, false)) return dot(in.reg, in.rm, in.vvvv);
    require(in.vvvv == 0, "#UD: VEX.vvvv must be 1111b");
    if (is(0x4b, kF2, true)) return load(in);
    if (is(0x4b, kF3, true)) return store(in);
    if (is(0x49, kF2, false) && in.rm == 0) return zero(in.reg);
    void* const address = reinterpret_cast<void*>(in.base + in.index);
    if (is(0x49, kNone, true) && in.reg == 0) return load_config(read<TileConfig>(address));
    if (is(0x49, k66, true) && in.reg == 0) return store_config(address);
    require(is(0x49, kNone, false) && in.reg == 0 && in.rm == 0, "the instruction is not emulated");
    load_config({});  // TILERELEASE
  }

 private:
  struct Tile {
    uint8_t bytes[16][64];
  };

  /// "LDTILECFG—Load Tile Configuration". Palette 0 is the initial state.
  void load_config(const TileConfig& config) {
    require(config.palette <= 1, "#GP: LDTILECFG: palettes are 0 and 1");
    std::fill_n(tiles_, 8, Tile{});
    config_ = {};
    if (config.palette == 0) return;
    const auto is_zero = [](auto value) { return value == 0; };
    require(std::ranges::all_of(config.start_row_and_reserved, is_zero) &&
                std::all_of(config.colsb + 8, config.colsb + 16, is_zero) &&
                std::all_of(config.rows + 8, config.rows + 16, is_zero),
            "#GP: LDTILECFG: reserved bytes (and here start_row) must be 0");
    for (int t = 0; t < 8; ++t) {
      require(config.rows[t] <= 16 && config.colsb[t] <= 64,
              "#GP: LDTILECFG: a tile has at most 16 rows of 64 bytes");
      require((config.rows[t] == 0) == (config.colsb[t] == 0),
              "#GP: LDTILECFG: a tile must have both rows and columns, or neither");
    }
    config_ = config;
  }

  /// "STTILECFG—Store Tile Configuration".
  void store_config(void* to) const { std::memcpy(to, &config_, sizeof config_); }

  void require_configured(int tile) const {
    require(tile < 8, "#UD: there are 8 tiles");
    require(config_.rows[tile] > 0, "#UD: the tile is not configured");
  }

  /// "TILEZERO—Zero Tile".
  void zero(int tile) {
    require_configured(tile);
    tiles_[tile] = {};
  }

  /// "TILELOADD/TILELOADDT1—Load Tile".
  void load(const Instruction& in) {
    zero(in.reg);
    for (int r = 0; r < config_.rows[in.reg]; ++r)
      std::memcpy(tiles_[in.reg].bytes[r], row_address(in, r), config_.colsb[in.reg]);
  }

  /// "TILESTORED—Store Tile".
  void store(const Instruction& in) const {
    require_configured(in.reg);
    for (int r = 0; r < config_.rows[in.reg]; ++r)
      std::memcpy(row_address(in, r), tiles_[in.reg].bytes[r], config_.colsb[in.reg]);
  }

  static void* row_address(const Instruction& in, int row) {
    require(in.has_sib, "#UD: a tile's address must have a SIB byte");
    return reinterpret_cast<void*>(in.base + row * in.index);
  }

  /// make_fp32() of a bfloat16, with denormals as 0 (DAZ).
  float half(int tile, int row, int column) const {
    const uint32_t bits = uint32_t{read<uint16_t>(tiles_[tile].bytes[row] + 2 * column)} << 16;
    return std::bit_cast<float>(bits & 0x7f800000 ? bits : bits & 0x80000000);
  }

  /// "TDPBF16PS—Dot Product of BF16 Tiles Accumulated into Packed Single Precision Tile":
  /// sum[m, n] += Σ_k a[m, k] · b[k, n]. Even and odd products have sums of their own. A product of
  /// two bfloat16 is exact in float32, so adding it rounds as FMA does.
  void dot(int sum, int a, int b) {
    for (const int tile : {sum, a, b}) require_configured(tile);
    require(sum != a && a != b && sum != b, "#UD: TDPBF16PS: the three tiles must differ");
    const auto& rows = config_.rows;
    const auto& colsb = config_.colsb;
    require(rows[sum] == rows[a] && colsb[sum] == colsb[b] && colsb[a] == 4 * rows[b] &&
                colsb[b] % 4 == 0,
            "#UD: TDPBF16PS: the tiles' shapes must be [m, n], [m, k] and [k, n]");
    for (int m = 0; m < rows[sum]; ++m) {
      for (int n = 0; n < colsb[sum] / 4; ++n) {
        float even = 0, odd = 0;
        for (int k = 0; k < rows[b]; ++k) {
          even += half(a, m, 2 * k) * half(b, k, 2 * n);
          odd += half(a, m, 2 * k + 1) * half(b, k, 2 * n + 1);
        }
        uint8_t* const element = tiles_[sum].bytes[m] + 4 * n;
        const float total = read<float>(element) + (even + odd);
        std::memcpy(element, &total, sizeof total);
      }
    }
  }

  TileConfig config_ = {};
  Tile tiles_[8] = {};
};

thread_local std::optional<TileUnit> tile_unit;  // a handler of signals takes no argument

void execute_instruction(int, siginfo_t*, void* context) {
  require(tile_unit.has_value(), "this thread has no AmxEmulator");
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const Instruction in = decode(reinterpret_cast<uint8_t*>(registers[REG_RIP]), registers);
  tile_unit->execute(in);
  registers[REG_RIP] += in.length;
}

}  // namespace

AmxEmulator::AmxEmulator() {
  constexpr int kTileData = 18;  // of XCR0
  // A CPU with AMX needs Linux's permission, without which it would raise SIGILL.
  syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, kTileData);
  tile_unit.emplace();
  struct sigaction action = {};
  action.sa_sigaction = execute_instruction;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &former_);
}

AmxEmulator::~AmxEmulator() {
  sigaction(SIGILL, &former_, nullptr);
  tile_unit.reset();
}

}  // namespace phasor

#endif
