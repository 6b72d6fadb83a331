// What phasor throws: Error, with a code for programs and one line for people.
//
// The line says what is wrong, the offending value, the allowed range, and what to do. The three
// classes say who has to act. The only other exceptions are std::out_of_range for an index into a
// result, and std::bad_alloc. After a throw the object is as usable as before. The library never
// aborts, exits or prints. Where there is no memory, oneDNN, OpenMP and SentencePiece may.
#pragma once

#include <stdexcept>
#include <string>

namespace [[gnu::visibility("default")]] phasor {

/// Values keep their numbers; new ones are added at the end.
enum class ErrorCode {
  kInvalidArgument,  // the caller's input: a token id out of range, an empty batch, …
  kEmptyText,        // a sequence without tokens
  kTooLong,          // a text longer than the positions, and no policy for it
  kCancelled,        // the caller requested it (std::stop_token)
  kNotFound,         // no such model
  kInvalidModel,     // a checkpoint's files are missing, damaged or contradict each other
  kUnsupported,      // a valid checkpoint of a kind that phasor does not implement
  kBackend,          // oneDNN refused to create or run a primitive
};

/// What phasor throws; what() is the line for people: UTF-8 without control characters.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message);
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// The caller's input or use of the library is wrong.
class InvalidArgument : public Error {
 public:
  explicit InvalidArgument(const std::string& message, ErrorCode code = ErrorCode::kInvalidArgument)
      : Error(code, message) {}
};

/// The checkpoint's files are at fault.
class ModelError : public Error {
 public:
  explicit ModelError(const std::string& message, ErrorCode code = ErrorCode::kInvalidModel)
      : Error(code, message) {}
};

/// oneDNN failed.
class BackendError : public Error {
 public:
  explicit BackendError(const std::string& message) : Error(ErrorCode::kBackend, message) {}
};

}  // namespace phasor
