// The header is untrusted: every value is checked before use.
#include "phasor/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "files/config_reader.h"
#include "files/file_kinds.h"
#include "files/files.h"
#include "files/refuse.h"
#include "files/torch_file.h"

namespace phasor {
using namespace internal;

namespace {

using nlohmann::json;

constexpr int64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeader = 100'000'000;  // the limit of the reference implementation

/// Bits of one element, by the header's name for its dtype; 0 for an unknown name.
int64_t bits_of(std::string_view dtype) {
  constexpr std::pair<std::string_view, int64_t> kBits[] = {
      {"F64", 64},    {"F32", 32}, {"F16", 16}, {"BF16", 16},   {"I64", 64},
      {"I32", 32},    {"I16", 16}, {"I8", 8},   {"U64", 64},    {"U32", 32},
      {"U16", 16},    {"U8", 8},   {"BOOL", 8}, {"F8_E4M3", 8}, {"F8_E5M2", 8},
      {"F8_E8M0", 8}, {"C64", 64}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  for (const auto& [name, bits] : kBits) {
    if (name == dtype) return bits;
  }
  return 0;
}

/// Reads one tensor's entry in the header; `data` are the file's.
SafetensorsFile::Entry read_entry(const ConfigReader& reader, const std::byte* data,
                                  int64_t data_size) {
  SafetensorsFile::Entry entry;
  entry.dtype = reader.text({"dtype"});
  entry.shape = reader.counts("shape");
  int64_t bits = bits_of(entry.dtype);
  if (bits == 0) reader.fail("dtype {} is not known", value_text(entry.dtype));
  if (entry.shape.size() > kMaxDimensions)
    reader.fail("{} dimensions; at most {} are read", entry.shape.size(), kMaxDimensions);
  const std::vector<int64_t> offsets = reader.counts("data_offsets");
  if (offsets.size() != 2) reader.refuse("data_offsets", "two numbers");
  if (offsets[0] > offsets[1]) reader.fail("data_offsets {} are not in order", shape_text(offsets));
  if (offsets[1] > data_size) {
    reader.fail(
        "data_offsets {} end past the {} bytes of data that are there; the file is cut "
        "off, get it again",
        shape_text(offsets), data_size);
  }
  for (const int64_t size : entry.shape) {
    if (__builtin_mul_overflow(bits, size, &bits))
      reader.fail("shape {} has more elements than any file", shape_text(entry.shape));
  }
  entry.num_bytes = bits / 8 + (bits % 8 != 0 ? 1 : 0);
  if (offsets[1] - offsets[0] != entry.num_bytes) {
    reader.fail("{} bytes of data where shape {} of {} takes {}", offsets[1] - offsets[0],
                shape_text(entry.shape), entry.dtype, entry.num_bytes);
  }
  entry.data = data + offsets[0];
  return entry;
}

void refuse_overlap(const std::filesystem::path& file,
                    const std::map<std::string, SafetensorsFile::Entry>& entries) {
  std::vector<std::pair<const std::string*, const SafetensorsFile::Entry*>> by_place;
  for (const auto& [name, entry] : entries) {
    if (entry.num_bytes > 0) by_place.emplace_back(&name, &entry);
  }
  std::ranges::sort(by_place,
                    [](const auto& a, const auto& b) { return a.second->data < b.second->data; });
  for (size_t i = 1; i < by_place.size(); ++i) {
    const auto& [name, entry] = by_place[i - 1];
    if (entry->data + entry->num_bytes > by_place[i].second->data) {
      refuse<ModelError>("{}: the tensors {} and {} overlap", file.string(), value_text(*name),
                         value_text(*by_place[i].first));
    }
  }
}

}  // namespace

std::shared_ptr<const SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& file,
                                                             bool copy) {
  const std::shared_ptr<SafetensorsFile> opened(new SafetensorsFile(file));
  opened->map(copy);
  opened->read_header();
  return opened;
}

std::shared_ptr<const SafetensorsFile> SafetensorsFile::open_torch(
    const std::filesystem::path& file, bool copy) {
  const std::shared_ptr<SafetensorsFile> opened(new SafetensorsFile(file));
  opened->map(copy);
  TorchTensors tensors = read_torch_file({opened->bytes_, opened->size_}, file);
  opened->entries_ = std::move(tensors.entries);
  opened->copies_ = std::move(tensors.copies);
  return opened;
}

SafetensorsFile::SafetensorsFile(std::filesystem::path file) : file_(std::move(file)) {}

const std::map<std::string, SafetensorsFile::Entry>& SafetensorsFile::entries() const {
  return entries_;
}
const std::map<std::string, std::string>& SafetensorsFile::metadata() const { return metadata_; }
bool SafetensorsFile::contains(const std::string& name) const { return entries_.contains(name); }

SafetensorsFile::~SafetensorsFile() {
  if (bytes_ != nullptr) munmap(const_cast<std::byte*>(bytes_), size_);
}

void SafetensorsFile::map(bool copy) {
  const PlainFile opened(file_);
  if (opened.size() < kLengthBytes) {
    refuse<ModelError>(
        "{}: {} bytes, fewer than any file of tensors has; the file is cut off, get it again",
        file_.string(), opened.size());
  }
  const auto refuse_for = [&](int reason) {
    refuse<ModelError>("{}: cannot be {}: {}", file_.string(), copy ? "read" : "mapped",
                       std::generic_category().message(reason));
  };
  void* const memory =
      mmap(nullptr, opened.size(), copy ? PROT_READ | PROT_WRITE : PROT_READ,
           copy ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE, copy ? -1 : opened.descriptor(), 0);
  if (memory == MAP_FAILED) refuse_for(errno);
  bytes_ = static_cast<const std::byte*>(memory);
  size_ = opened.size();
  is_copy_ = copy;
  if (!copy) return;
  const size_t have = opened.read(std::span(static_cast<char*>(memory), size_));
  if (have < size_) refuse_for(EIO);  // the file became shorter
}

void SafetensorsFile::read_header() {
  const std::string_view all(reinterpret_cast<const char*>(bytes_), size_);
  refuse_other_kind(all, file_, FileFormat::kSafetensors);
  uint64_t length = 0;
  std::memcpy(&length, bytes_, kLengthBytes);
  if (length > kMaxHeader || length > size_ - kLengthBytes) {
    refuse<ModelError>(
        "{}: its header claims {} bytes, but the file has {} and a header at most {}; the file is "
        "cut off or not safetensors, get it again",
        file_.string(), length, size_, kMaxHeader);
  }
  const JsonDocument header =
      parse_json_object(all.substr(kLengthBytes, length), file_.string() + ": header");
  const std::byte* const data = bytes_ + kLengthBytes + length;
  const auto data_size = static_cast<int64_t>(size_ - kLengthBytes - length);
  for (const auto& [name, value] : header->items()) {
    const std::string where = fmt::format("{}: tensor {}", file_.string(), value_text(name));
    if (!value.is_object()) refuse<ModelError>("{} is {}, not an object", where, value_text(value));
    if (name != "__metadata__") {
      entries_.emplace(name, read_entry(ConfigReader(where, value), data, data_size));
      continue;
    }
    for (const auto& [key, text] : value.items()) {
      if (text.is_string()) metadata_.emplace(key, text.get<std::string>());
    }
  }
  refuse_overlap(file_, entries_);
}

void SafetensorsFile::release_pages() const {
  if (is_copy_) return;
  // The mapping is never written to, so nothing is lost. Failure does not matter.
  madvise(const_cast<std::byte*>(bytes_), size_, MADV_DONTNEED);
}

Tensor SafetensorsFile::tensor(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    refuse<ModelError>("{}: the tensor '{}' is missing", file_.string(), name);
  const Entry& entry = found->second;
  const auto read = names<DType>().all;
  if (std::ranges::find(read, entry.dtype) == read.end()) {
    refuse<ModelError>(ErrorCode::kUnsupported, "{}: the tensor '{}' has dtype {}; phasor reads {}",
                       file_.string(), name, entry.dtype, fmt::join(read, ", "));
  }
  return {.dtype = parse<DType>(entry.dtype), .shape = entry.shape, .data = entry.data};
}

}  // namespace phasor
