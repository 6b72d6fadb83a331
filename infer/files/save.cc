// Writing tensors: a safetensors file is eight bytes of header length, the header in JSON, and the
// tensors; an npz file is a zip archive of NumPy's .npy files, stored without compression.
#include "infer/files/save.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "infer/commands.h"
#include "infer/files/temporary_file.h"

namespace infer {
namespace {

static_assert(std::endian::native == std::endian::little, "all formats are little-endian");

nlohmann::ordered_json header_of(std::span<const SavedTensor> tensors,
                                 const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const SavedTensor& tensor : tensors) {
    const size_t end = offset + tensor.bytes.size();
    header[tensor.name] = {{"dtype", tensor.kind == SavedTensor::Kind::kInt32 ? "I32" : "F32"},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  return header;
}

/// The header, and the tensors one after another.
void save_flat(const std::filesystem::path& path, const std::string& header,
               std::span<const SavedTensor> tensors) {
  TemporaryFile file("--save", path);
  file.write(std::as_bytes(std::span(header)));
  for (const SavedTensor& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

template <typename... Numbers>
void append(std::string& bytes, Numbers... numbers) {
  (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
}

using CrcTable = std::array<uint32_t, 256>;

/// Table k has the remainder of each byte that k zero bytes follow.
constexpr std::array<CrcTable, 8> kCrcTables = [] {
  std::array<CrcTable, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t& rest = tables[0][byte] = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1) * 0xedb88320;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}();

/// zip's checksum of all bytes so far; it begins and ends with ~0 XOR.
uint32_t add_to_crc(uint32_t crc, std::span<const std::byte> bytes) {
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= crc;
    crc = 0;
    for (int k = 7; k >= 0; --k, word >>= 8) crc ^= kCrcTables[k][word & 0xff];
  }
  for (const std::byte byte : bytes) {
    crc = crc >> 8 ^ kCrcTables[0][(crc ^ std::to_integer<uint32_t>(byte)) & 0xff];
  }
  return crc;
}

/// Writes an archive front to back; APPNOTE.TXT of PKWARE has its records. `big`: beyond 4 GiB or
/// 65 534 files, which takes the 64-bit fields of Zip64, which not every program reads.
class ZipFile {
 public:
  ZipFile(const std::filesystem::path& path, bool big) : file_("--save", path), big_(big) {}

  void add(const std::string& name, const std::string& head, std::span<const std::byte> body) {
    const uint64_t size = head.size() + body.size(), place = place_;
    const uint32_t crc = ~add_to_crc(add_to_crc(~0u, std::as_bytes(std::span(head))), body);
    const auto sizes = [&](std::string& record, uint16_t bytes_of_extra) {
      append(record, needed(), kUtf8Names, kStored, kMidnight, kFirstOfJanuary1980, crc,
             narrow(size), narrow(size), static_cast<uint16_t>(name.size()),
             static_cast<uint16_t>(big_ ? bytes_of_extra + 4 : 0));
    };
    std::string local;
    append(local, uint32_t{0x04034b50});
    sizes(local, 16);
    local += name;
    if (big_) append(local, kZip64, uint16_t{16}, size, size);
    write(std::as_bytes(std::span(local)));
    write(std::as_bytes(std::span(head)));
    write(body);
    append(directory_, uint32_t{0x02014b50}, kMadeBy);
    sizes(directory_, 24);
    append(directory_, uint16_t{0}, uint16_t{0}, uint16_t{0}, kPlainFile, narrow(place));
    directory_ += name;
    if (big_) append(directory_, kZip64, uint16_t{24}, size, size, place);
    ++num_files_;
  }

  void commit() {
    const uint64_t place = place_, size = directory_.size(), end = place + size;
    if (big_) {
      append(directory_, uint32_t{0x06064b50}, uint64_t{44}, kMadeBy, needed(), uint32_t{0},
             uint32_t{0}, num_files_, num_files_, size, place);
      append(directory_, uint32_t{0x07064b50}, uint32_t{0}, end, uint32_t{1});
    }
    const auto count = static_cast<uint16_t>(big_ ? 0xffff : num_files_);
    append(directory_, uint32_t{0x06054b50}, uint16_t{0}, uint16_t{0}, count, count, narrow(size),
           narrow(place), uint16_t{0});
    write(std::as_bytes(std::span(directory_)));
    file_.commit();
  }

 private:
  static constexpr uint16_t kMadeBy = 3 << 8 | 45;  // Unix, version 4.5 of the format
  static constexpr uint16_t kUtf8Names = 1 << 11, kStored = 0, kZip64 = 1;
  static constexpr uint16_t kMidnight = 0, kFirstOfJanuary1980 = 1 << 5 | 1;  // on every day
  static constexpr uint32_t kPlainFile = 0100644u << 16;

  uint16_t needed() const { return big_ ? 45 : 20; }
  uint32_t narrow(uint64_t number) const { return big_ ? ~0u : static_cast<uint32_t>(number); }
  void write(std::span<const std::byte> bytes) {
    file_.write(bytes);
    place_ += bytes.size();
  }

  TemporaryFile file_;
  const bool big_;
  uint64_t place_ = 0, num_files_ = 0;
  std::string directory_;
};

void save_npz(const std::filesystem::path& path, std::span<const SavedTensor> tensors) {
  uint64_t bound = 0;  // of the archive's bytes
  for (const SavedTensor& tensor : tensors) {
    bound += tensor.bytes.size() + 3 * tensor.name.size() + 1024;
  }
  ZipFile file(path, bound > 0xfffffffe || tensors.size() > 0xfffe);
  for (const SavedTensor& tensor : tensors) {
    file.add(tensor.name + ".npy", npy_header(tensor.kind, tensor.shape), tensor.bytes);
  }
  file.commit();
}

}  // namespace

std::string safetensors_header(const nlohmann::ordered_json& header, size_t length) {
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize(length > 0 ? length : (text.size() + 7) / 8 * 8, ' ');
  const auto size = static_cast<uint64_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
}

std::string npy_header(SavedTensor::Kind kind, std::span<const int64_t> shape) {
  std::string sizes;
  for (const int64_t size : shape) sizes += fmt::format("{}, ", size);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 kind == SavedTensor::Kind::kInt32 ? "<i4" : "<f4", sizes);
  constexpr size_t kPreamble = 10;  // magic, version, length
  const size_t padded = (kPreamble + text.size() + 1 + 63) / 64 * 64;
  text.resize(padded - kPreamble - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

void check_save_path(const std::filesystem::path& path, bool one_tensor) {
  const std::string extension = path.extension().string();
  if (extension == ".safetensors" || extension == ".npz") return;
  if (one_tensor && extension == ".npy") return;
  throw UsageError(fmt::format("--save: the name {} must end in {}.npz or .safetensors",
                               path.string(), one_tensor ? ".npy, " : ""));
}

void save(const std::filesystem::path& path, std::span<const SavedTensor> tensors,
          const std::map<std::string, std::string>& metadata) {
  const std::string extension = path.extension().string();
  if (extension == ".npz") {
    save_npz(path, tensors);
  } else if (extension == ".npy") {
    save_flat(path, npy_header(tensors[0].kind, tensors[0].shape), tensors.first(1));
  } else {
    save_flat(path, safetensors_header(header_of(tensors, metadata)), tensors);
  }
}

}  // namespace infer
