// What is wrong with a model's file is a ModelError; with the user's own, InvalidArgument.
#include "infer/files/plain_file.h"

#include "models/files.h"
#include "phasor/errors.h"

namespace infer {
namespace {

template <typename Body>
auto as_input(const std::string& what, Body body) {
  try {
    return body();
  } catch (const phasor::ModelError& error) {
    throw phasor::InvalidArgument(what + error.what());
  }
}

}  // namespace

PlainFile::PlainFile(const std::filesystem::path& file, const std::string& what)
    : what_(what), file_(as_input(what, [&] {
        return std::make_unique<const phasor::internal::PlainFile>(file);
      })) {}

PlainFile::~PlainFile() = default;

uint64_t PlainFile::size() const { return static_cast<uint64_t>(file_->size()); }

size_t PlainFile::read(std::span<char> bytes) {
  return as_input(what_, [&] { return file_->read(bytes); });
}

}  // namespace infer
