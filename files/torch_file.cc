// The file is untrusted: what the pickle says is checked against the bytes that are there.
#include "files/torch_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <utility>

#include "files/file_kinds.h"
#include "files/files.h"
#include "files/refuse.h"
#include "files/utf8.h"

namespace phasor::internal {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kOrderedDict = "collections\nOrderedDict";
constexpr std::string_view kRebuildTensor = "torch._utils\n_rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils\n_rebuild_parameter";

/// A storage holds numbers of one kind, one after the other.
struct StorageKind {
  std::string_view name, dtype;  // safetensors' name of the dtype
  int64_t size;                  // of a number, in bytes
};
constexpr StorageKind kStorages[] = {
    {"torch\nFloatStorage", "F32", 4},     {"torch\nHalfStorage", "F16", 2},
    {"torch\nBFloat16Storage", "BF16", 2}, {"torch\nDoubleStorage", "F64", 8},
    {"torch\nLongStorage", "I64", 8},      {"torch\nIntStorage", "I32", 4},
    {"torch\nShortStorage", "I16", 2},     {"torch\nCharStorage", "I8", 1},
    {"torch\nByteStorage", "U8", 1},       {"torch\nBoolStorage", "BOOL", 1}};

/// What a pickle makes. A list is a tuple here, and a parameter the tensor that it holds.
struct Value {
  enum class Kind {
    kOther,
    kMark,
    kNumber,
    kText,
    kGlobal,
    kTuple,
    kDictionary,
    kStorage,
    kTensor
  };

  Kind kind = Kind::kOther;    // None, and floating-point numbers
  int64_t number = 0;          // a truth value's: 0 or 1
  std::string_view text = {};  // of a global "MODULE\nNAME"; the bytes of a number of above 64 bits
  std::vector<const Value*> items = {};  // a dictionary's keys and values in turn; what a tensor
                                         // and a storage are made of
};
using Kind = Value::Kind;

/// The most operations of a file, as each may take memory; a tensor has about 31.
constexpr int64_t kMostOperations = int64_t{1} << 21;

/// The stack machine of Python's pickle module (its opcodes are described in pickletools), cut down
/// to what torch.save() writes of dictionaries of tensors with the protocols up to 2.
class Unpickler {
 public:
  Unpickler(Bytes bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  /// The value of the pickle that begins here; valid as long as this object.
  const Value& load() {
    stack_.clear();
    memo_.clear();
    for (;;) {
      const auto operation = number<uint8_t>();
      if (operation == '.') return *pop();
      if (++operations_ > kMostOperations) {
        refuse<ModelError>("{}: the pickle has more than {} operations", where_, kMostOperations);
      }
      run(operation);
    }
  }

  /// Of all values.
  const std::vector<const Value*>& storages() const { return storages_; }

  /// The next bytes, behind the last pickle.
  Bytes take(uint64_t size) {
    if (size > bytes_.size()) {
      refuse<ModelError>("{}: it ends in the middle; the file is cut off, get it again", where_);
    }
    const Bytes taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  template <typename T>
  T number() {
    T value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  [[noreturn]] void damaged() const {
    refuse<ModelError>("{}: the pickle is damaged, get it again", where_);
  }

  Value* push(Value value) {
    values_.push_back(std::move(value));
    stack_.push_back(&values_.back());
    return stack_.back();
  }
  Value* top(Kind kind) const {
    if (stack_.empty() || stack_.back()->kind != kind) damaged();
    return stack_.back();
  }
  Value* pop() {
    if (stack_.empty() || stack_.back()->kind == Kind::kMark) damaged();
    Value* const value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::vector<const Value*> pop_last(size_t count) {
    std::vector<const Value*> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  std::vector<const Value*> pop_to_mark() {
    size_t count = 0;
    while (count < stack_.size() && stack_[stack_.size() - 1 - count]->kind != Kind::kMark) ++count;
    std::vector<const Value*> items = pop_last(count);
    if (stack_.empty()) damaged();
    stack_.pop_back();
    return items;
  }
  static std::vector<const Value*> first_items(const Value& tuple, size_t most) {
    const auto begin = tuple.items.begin();
    return {begin, begin + static_cast<int64_t>(std::min(most, tuple.items.size()))};
  }
  void add_items(Kind kind, const std::vector<const Value*>& items) {
    Value* const container = top(kind);
    if (kind == Kind::kDictionary && items.size() % 2 != 0) damaged();
    container->items.insert(container->items.end(), items.begin(), items.end());
  }

  std::string_view text(uint64_t size) {
    const Bytes bytes = take(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string_view line() {
    const auto end = std::ranges::find(bytes_, std::byte{'\n'});
    const std::string_view line = text(end - bytes_.begin());
    take(1);
    return line;
  }

  void run(uint8_t operation) {
    switch (operation) {
      case 0x80:  // PROTO
        take(1);
        break;
      case '(':  // MARK
        push({.kind = Kind::kMark});
        break;
      case 'N':  // NONE
        push({});
        break;
      case 'G':  // BINFLOAT
        take(8);
        push({});
        break;
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        push({.kind = Kind::kNumber, .number = operation == 0x88});
        break;
      case 'J':  // BININT
        push({.kind = Kind::kNumber, .number = number<int32_t>()});
        break;
      case 'K':  // BININT1
        push({.kind = Kind::kNumber, .number = number<uint8_t>()});
        break;
      case 'M':  // BININT2
        push({.kind = Kind::kNumber, .number = number<uint16_t>()});
        break;
      case 0x8a:  // LONG1
        push_long(text(number<uint8_t>()));
        break;
      case 'X':  // BINUNICODE
        push({.kind = Kind::kText, .text = text(number<uint32_t>())});
        break;
      case 'U':  // SHORT_BINSTRING
        push({.kind = Kind::kText, .text = text(number<uint8_t>())});
        break;
      case ')':  // EMPTY_TUPLE
      case ']':  // EMPTY_LIST
        push({.kind = Kind::kTuple});
        break;
      case 0x85:  // TUPLE1
      case 0x86:  // TUPLE2
      case 0x87:  // TUPLE3
        push_tuple(pop_last(operation - 0x84));
        break;
      case 't':  // TUPLE
        push_tuple(pop_to_mark());
        break;
      case '}':  // EMPTY_DICT
        push({.kind = Kind::kDictionary});
        break;
      case 'a':  // APPEND
        add_items(Kind::kTuple, pop_last(1));
        break;
      case 'e':  // APPENDS
        add_items(Kind::kTuple, pop_to_mark());
        break;
      case 's':  // SETITEM
        add_items(Kind::kDictionary, pop_last(2));
        break;
      case 'u':  // SETITEMS
        add_items(Kind::kDictionary, pop_to_mark());
        break;
      case 'q':  // BINPUT
        put(number<uint8_t>());
        break;
      case 'r':  // LONG_BINPUT
        put(number<uint32_t>());
        break;
      case 'h':  // BINGET
        get(number<uint8_t>());
        break;
      case 'j':  // LONG_BINGET
        get(number<uint32_t>());
        break;
      case 'c':  // GLOBAL
        push_global();
        break;
      case 'R':  // REDUCE
        call();
        break;
      case 'b':  // BUILD: attributes of a dictionary, such as the versions of its modules
        pop();
        top(Kind::kDictionary);
        break;
      case 'Q':  // BINPERSID
        storages_.push_back(push({.kind = Kind::kStorage, .items = first_items(*pop(), 6)}));
        break;
      default:
        refuse<ModelError>(ErrorCode::kUnsupported,
                           "{}: the pickle has the operation 0x{:02x}, which no dictionary of "
                           "tensors needs; phasor reads tensors alone",
                           where_, operation);
    }
  }

  void push_long(std::string_view bytes) {
    if (bytes.size() > sizeof(int64_t)) {
      push({.text = bytes});
      return;
    }
    const bool negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
    int64_t value = negative ? -1 : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    push({.kind = Kind::kNumber, .number = value});
  }
  void push_tuple(std::vector<const Value*> items) {
    push({.kind = Kind::kTuple, .items = std::move(items)});
  }

  void put(uint32_t index) {
    if (stack_.empty()) damaged();
    memo_[index] = stack_.back();
  }
  void get(uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) damaged();
    stack_.push_back(found->second);
  }

  void push_global() {
    const std::string_view module = line(), name = line();
    const std::string_view global(module.data(), module.size() + 1 + name.size());
    const bool known =
        global == kOrderedDict || global == kRebuildTensor || global == kRebuildParameter ||
        std::ranges::find(kStorages, global, &StorageKind::name) != std::end(kStorages);
    if (!known) {
      refuse<ModelError>(ErrorCode::kUnsupported,
                         "{}: the pickle asks for {} of the Python module {}; phasor reads tensors "
                         "alone, and runs nothing",
                         where_, value_text(std::string(name)), value_text(std::string(module)));
    }
    push({.kind = Kind::kGlobal, .text = global});
  }

  void call() {
    const Value* const arguments = pop();
    const Value* const function = pop();
    const size_t count = arguments->items.size();
    if (arguments->kind != Kind::kTuple || function->kind != Kind::kGlobal) damaged();
    if (function->text == kOrderedDict && count == 0) {
      push({.kind = Kind::kDictionary});
    } else if (function->text == kRebuildTensor && count >= 4) {
      push({.kind = Kind::kTensor, .items = first_items(*arguments, 4)});
    } else if (function->text == kRebuildParameter && count >= 1 &&
               arguments->items[0]->kind == Kind::kTensor) {
      push(*arguments->items[0]);
    } else {
      damaged();
    }
  }

  Bytes bytes_;
  std::string where_;
  int64_t operations_ = 0;
  std::deque<Value> values_;
  std::vector<const Value*> storages_;
  std::vector<Value*> stack_;
  std::map<uint32_t, Value*> memo_;
};

/// The value of a text in a dictionary, the last one given to it; null where there is none.
const Value* find(const Value& dictionary, std::string_view key) {
  for (size_t i = dictionary.items.size(); i >= 2; i -= 2) {
    const Value& name = *dictionary.items[i - 2];
    if (name.kind == Kind::kText && name.text == key) return dictionary.items[i - 1];
  }
  return nullptr;
}

/// Which numbers a tensor's are: a persistent id ("storage", kind, key, place, count).
struct Storage {
  const StorageKind* kind = nullptr;
  std::string_view key;
  int64_t count = 0;
};

/// Throws ModelError, which begins with `where`.
Storage storage_of(const Value& value, const std::string& where) {
  const auto is = [&](size_t i, Kind kind) {
    return i < value.items.size() && value.items[i]->kind == kind;
  };
  const auto* const kind =
      is(1, Kind::kGlobal) ? std::ranges::find(kStorages, value.items[1]->text, &StorageKind::name)
                           : std::end(kStorages);
  const bool fits = kind != std::end(kStorages) && is(2, Kind::kText) && is(4, Kind::kNumber) &&
                    value.items[4]->number >= 0 &&
                    value.items[4]->number <= std::numeric_limits<int64_t>::max() / kind->size;
  // A sixth item is a part of a storage that is another's, which PyTorch wrote before 0.4.
  const bool whole = value.items.size() == 5 || is(5, Kind::kOther);
  if (!fits || !whole) refuse<ModelError>("{}: what it says of a storage is damaged", where);
  return {kind, value.items[2]->text, value.items[4]->number};
}

/// Copies the `count` numbers of a tensor that does not lie in one piece, in the order of its
/// indices. `size`: bytes of a number.
std::vector<std::byte> gather(const std::byte* first, const std::vector<int64_t>& shape,
                              const std::vector<int64_t>& strides, int64_t size, int64_t count) {
  std::vector<std::byte> copy(count * size);
  std::vector<int64_t> index(shape.size());
  int64_t place = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(copy.data() + i * size, first + place * size, size);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) {
        place += strides[d];
        break;
      }
      place -= (shape[d] - 1) * strides[d];
      index[d] = 0;
    }
  }
  return copy;
}

/// Makes entries of tensors, whose storages it has by their keys.
class TensorReader {
 public:
  using Storages = std::map<std::string_view, Bytes>;

  TensorReader(std::string where, int64_t file_size, const Storages& storages)
      : where_(std::move(where)), copies_left_(file_size), storages_(storages) {}

  TorchTensors read(const Value& root) {
    const Value* const state = root.kind == Kind::kDictionary ? find(root, "state_dict") : nullptr;
    const Value& dictionary = state != nullptr && state->kind == Kind::kDictionary ? *state : root;
    if (dictionary.kind == Kind::kDictionary) {
      for (size_t i = 0; i < dictionary.items.size(); i += 2) {
        const Value &name = *dictionary.items[i], &value = *dictionary.items[i + 1];
        if (name.kind != Kind::kText || value.kind != Kind::kTensor) continue;
        if (to_valid_utf8(name.text).invalid_bytes > 0) {
          refuse<ModelError>("{}: a tensor's name is not valid UTF-8", where_);
        }
        tensors_.entries[std::string(name.text)] = entry_of(value, std::string(name.text));
      }
    }
    if (tensors_.entries.empty()) {
      refuse<ModelError>("{}: it holds no dictionary of tensors", where_);
    }
    return std::move(tensors_);
  }

 private:
  [[noreturn]] void fail(const std::string& name, std::string_view what) const {
    refuse<ModelError>("{}: tensor {}: {}", where_, value_text(name), what);
  }

  std::vector<int64_t> counts(const Value& tuple, const std::string& name) const {
    std::vector<int64_t> numbers;
    for (const Value* const item : tuple.items) {
      if (item->kind != Kind::kNumber || item->number < 0) break;
      numbers.push_back(item->number);
    }
    if (tuple.kind != Kind::kTuple || numbers.size() != tuple.items.size() ||
        numbers.size() > kMaxDimensions) {
      fail(name, "its shape is damaged");
    }
    return numbers;
  }

  // _rebuild_tensor_v2(storage, offset, shape, strides, …)
  SafetensorsFile::Entry entry_of(const Value& tensor, const std::string& name) {
    const Value &source = *tensor.items[0], &offset = *tensor.items[1];
    if (source.kind != Kind::kStorage || offset.kind != Kind::kNumber || offset.number < 0) {
      fail(name, "its storage is damaged");
    }
    const Storage storage = storage_of(source, where_);
    const auto found = storages_.find(storage.key);
    const int64_t size = storage.kind->size;
    if (found == storages_.end() || std::ssize(found->second) != storage.count * size) {
      fail(name,
           "its storage is missing, or has another number of bytes than it says; the file is "
           "damaged, get it again");
    }
    const std::vector<int64_t> shape = counts(*tensor.items[2], name);
    const std::vector<int64_t> strides = counts(*tensor.items[3], name);
    if (shape.size() != strides.size()) fail(name, "its shape is damaged");
    int64_t count = 1, last = offset.number;  // of its numbers; the place of the last one
    bool in_one_piece = true;
    for (size_t d = shape.size(); d-- > 0;) {
      int64_t step = 0;
      in_one_piece &= shape[d] <= 1 || strides[d] == count;
      if (__builtin_mul_overflow(count, shape[d], &count) ||
          __builtin_mul_overflow(std::max<int64_t>(shape[d] - 1, 0), strides[d], &step) ||
          __builtin_add_overflow(last, step, &last)) {
        fail(name, "its shape has more elements than any file");
      }
    }
    if (count > 0 && last >= storage.count) fail(name, "it ends past its storage");
    if (count > storage.count) fail(name, "its elements share memory");
    SafetensorsFile::Entry entry = {.dtype = std::string(storage.kind->dtype),
                                    .shape = shape,
                                    .data = found->second.data(),
                                    .num_bytes = count * size};
    if (count == 0) return entry;
    entry.data += offset.number * size;
    if (!in_one_piece) {
      copies_left_ -= entry.num_bytes;
      if (copies_left_ < 0) fail(name, "its elements share memory with too many others");
      tensors_.copies.push_back(gather(entry.data, shape, strides, size, count));
      entry.data = tensors_.copies.back().data();
    }
    return entry;
  }

  std::string where_;
  int64_t copies_left_;  // bytes: tensors that are no views of others' numbers fit into the file
  const Storages& storages_;
  TorchTensors tensors_;
};

[[noreturn]] void refuse_byte_order(const std::string& where) {
  refuse<ModelError>(ErrorCode::kUnsupported, "{}: its numbers are not little-endian", where);
}

/// NAME/data.pkl, NAME/byteorder, and a file NAME/data/KEY for each storage.
TorchTensors read_archive(Bytes bytes, const std::string& where) {
  const auto files = read_zip(bytes, where);
  constexpr std::string_view kPickle = "/data.pkl";
  const auto pickle =
      std::ranges::find_if(files, [&](const auto& file) { return file.first.ends_with(kPickle); });
  if (pickle == files.end()) refuse<ModelError>("{}: there is no data.pkl in it", where);
  const auto& [name, data] = *pickle;
  const std::string folder(name.substr(0, name.size() - kPickle.size() + 1));
  TensorReader::Storages storages;
  for (const auto& [path, content] : files) {
    if (!path.starts_with(folder)) continue;
    const std::string_view rest = path.substr(folder.size());
    if (constexpr std::string_view kData = "data/"; rest.starts_with(kData)) {
      storages.emplace(rest.substr(kData.size()), content);
    } else if (rest == "byteorder" &&
               !std::ranges::equal(content, std::as_bytes(std::span("little", 6)))) {
      refuse_byte_order(where);
    }
  }
  Unpickler unpickler(data, where);
  return TensorReader(where, std::ssize(bytes), storages).read(unpickler.load());
}

/// What torch.save() wrote before version 1.6: pickles of a mark, the version, the system, the
/// value and the keys of the storages; then each storage's length and numbers.
TorchTensors read_pickles(Bytes bytes, const std::string& where) {
  constexpr std::string_view kMark("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
  Unpickler unpickler(bytes, where);
  if (unpickler.load().text != kMark) {
    refuse<ModelError>("{}: it is a pickle, but none of PyTorch's torch.save()", where);
  }
  unpickler.load();
  const Value* const little = find(unpickler.load(), "little_endian");
  if (little == nullptr || little->number != 1) refuse_byte_order(where);
  const Value& root = unpickler.load();
  std::map<std::string_view, int64_t> sizes;  // of a number of each storage
  for (const Value* const value : unpickler.storages()) {
    const Storage storage = storage_of(*value, where);
    sizes[storage.key] = storage.kind->size;
  }
  TensorReader::Storages storages;
  for (const Value* const key : unpickler.load().items) {
    const auto size = sizes.find(key->text);
    const auto count = unpickler.number<int64_t>();
    int64_t length = 0;
    if (size == sizes.end() || count < 0 || __builtin_mul_overflow(count, size->second, &length)) {
      refuse<ModelError>("{}: what it says of a storage is damaged", where);
    }
    storages[key->text] = unpickler.take(length);
  }
  return TensorReader(where, std::ssize(bytes), storages).read(root);
}

}  // namespace

TorchTensors read_torch_file(Bytes bytes, const std::filesystem::path& file) {
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (head.starts_with("PK\x03\x04")) return read_archive(bytes, file.string());
  refuse_other_kind(head, file, FileFormat::kPickle);
  if (!head.starts_with('\x80')) {
    refuse<ModelError>("{}: it is no file of PyTorch's torch.save()", file.string());
  }
  return read_pickles(bytes, file.string());
}

}  // namespace phasor::internal
