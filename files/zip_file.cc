// The archive is untrusted: every place is checked before it is read.
#include <cstdint>
#include <cstring>
#include <limits>

#include "files/files.h"
#include "files/refuse.h"
#include "files/torch_file.h"

namespace phasor::internal {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint64_t kLocalSize = 30, kDirectorySize = 46, kEndSize = 22, kLocatorSize = 20;

class Archive {
 public:
  Archive(std::span<const std::byte> bytes, const std::string& where)
      : bytes_(bytes), where_(where) {}

  std::map<std::string_view, std::span<const std::byte>> read() {
    const uint64_t end = find_end();
    uint64_t count = number<uint16_t>(end + 10), place = number<uint32_t>(end + 16);
    constexpr uint32_t kIn64 = std::numeric_limits<uint32_t>::max();
    if (count == std::numeric_limits<uint16_t>::max() || place == kIn64) {
      if (end < kLocatorSize) damaged();
      const uint64_t locator = expect(kLocator64, end - kLocatorSize);
      const uint64_t end64 = expect(kEnd64, number<uint64_t>(locator + 8));
      count = number<uint64_t>(end64 + 32);
      place = number<uint64_t>(end64 + 48);
    }
    std::map<std::string_view, std::span<const std::byte>> files;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t header = expect(kDirectoryHeader, place);
      const std::string_view name = text(header + kDirectorySize, number<uint16_t>(header + 28));
      if (!files.emplace(name, file(header, name)).second) fail(name, "is in it twice");
      place = header + kDirectorySize + name.size() + number<uint16_t>(header + 30) +
              number<uint16_t>(header + 32);
    }
    return files;
  }

 private:
  [[noreturn]] void damaged() const {
    refuse<ModelError>("{}: the zip archive is cut off or damaged, get it again", where_);
  }
  [[noreturn]] void fail(std::string_view name, const char* what) const {
    refuse<ModelError>("{}: {} {}", where_, value_text(std::string(name)), what);
  }

  std::span<const std::byte> part(uint64_t place, uint64_t size) const {
    if (place > bytes_.size() || size > bytes_.size() - place) damaged();
    return bytes_.subspan(place, size);
  }
  std::string_view text(uint64_t place, uint64_t size) const {
    const auto bytes = part(place, size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  template <typename T>
  T number(uint64_t place) const {
    T value = 0;
    std::memcpy(&value, part(place, sizeof value).data(), sizeof value);
    return value;
  }
  /// `place`, where the record must begin with this signature.
  uint64_t expect(uint32_t signature, uint64_t place) const {
    if (number<uint32_t>(place) != signature) damaged();
    return place;
  }

  /// The last record of the archive, behind which a comment may stand.
  uint64_t find_end() const {
    constexpr uint64_t kMostComment = std::numeric_limits<uint16_t>::max();
    for (uint64_t comment = 0; comment <= kMostComment; ++comment) {
      if (bytes_.size() < kEndSize + comment) break;
      const uint64_t place = bytes_.size() - kEndSize - comment;
      if (number<uint32_t>(place) == kEnd && number<uint16_t>(place + 20) == comment) return place;
    }
    damaged();
  }

  /// Of the file that the directory's header at `header` describes.
  std::span<const std::byte> file(uint64_t header, std::string_view name) const {
    constexpr uint16_t kEncrypted = 1, kStored = 0;
    if ((number<uint16_t>(header + 8) & kEncrypted) != 0) fail(name, "is encrypted");
    if (number<uint16_t>(header + 10) != kStored) fail(name, "is compressed");
    uint64_t size = number<uint32_t>(header + 24), stored = number<uint32_t>(header + 20);
    uint64_t place = number<uint32_t>(header + 42);
    read_large(header + kDirectorySize + name.size(), number<uint16_t>(header + 30),
               {&size, &stored, &place});
    if (size != stored) fail(name, "is damaged");
    const uint64_t local = expect(kLocalHeader, place);
    return part(local + kLocalSize + number<uint16_t>(local + 26) + number<uint16_t>(local + 28),
                size);
  }

  /// Takes those of `numbers` that do not fit into 32 bits from the header's extra fields.
  void read_large(uint64_t place, uint64_t size, std::initializer_list<uint64_t*> numbers) const {
    constexpr uint16_t kZip64 = 1;
    for (const uint64_t end = place + size; place + 4 <= end;) {
      const auto id = number<uint16_t>(place), bytes = number<uint16_t>(place + 2);
      place += 4;
      uint64_t next = place;
      for (uint64_t* const value : numbers) {
        if (id != kZip64 || *value != std::numeric_limits<uint32_t>::max()) continue;
        *value = number<uint64_t>(next);
        next += sizeof *value;
      }
      if (next > place + bytes) damaged();
      place += bytes;
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& where_;
};

}  // namespace

std::map<std::string_view, std::span<const std::byte>> read_zip(std::span<const std::byte> archive,
                                                                const std::string& where) {
  return Archive(archive, where).read();
}

}  // namespace phasor::internal
