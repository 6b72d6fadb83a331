#include "infer/serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/host_name.hpp>

#include "infer/serve/exchange.h"

namespace infer {
namespace {

/// Why a body is not read, whatever it holds: what its headers say.
Failure unread_body(const Route& route, const HttpRequest& request) {
  constexpr std::string_view kJson = "application/json", kMultipart = "multipart/";
  std::string_view type = request.content_type;
  type = type.substr(0, type.find_first_of("; \t"));
  if (!request.encoding.empty() && !equal_letters(request.encoding, "identity"))
    return {415, "Validation",
            fmt::format("the body is encoded as {:.100}; send it as it is", request.encoding)};
  const bool is_form = equal_letters(type.substr(0, kMultipart.size()), kMultipart);
  // Another site's page can send JSON only if we allow it, which we do not.
  if (is_form || (route.is(Route::kJsonOnly) && !equal_letters(type, kJson)))
    return {415, "Validation",
            fmt::format("the body's type is {:.100}; send JSON, as application/json",
                        type.empty() ? "not given" : type)};
  if (!request.has_length)
    return {411, "Validation",
            "the body has no length; send JSON, with Content-Length or in chunks"};
  return {};
}

/// Of ASCII's letters, whatever the locale.
std::string lower(std::string_view text) {
  std::string letters(text);
  for (char& c : letters) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return letters;
}

/// "name" and "8080" of "name:8080" and of "http://Name:8080/"; "[::1]" and "80" of "http://[::1]".
struct Site {
  explicit Site(std::string_view origin, std::string_view scheme = {}) {
    if (const size_t end = origin.find("://"); end != origin.npos) {
      scheme = origin.substr(0, end);
      origin.remove_prefix(end + 3);
    }
    const bool is_ipv6 = origin.starts_with('[');
    const size_t end = is_ipv6 ? origin.find(']') + 1 : origin.find_first_of(":/");
    name = lower(origin.substr(0, end));
    if (name.ends_with('.')) name.pop_back();
    origin.remove_prefix(name.empty() ? origin.size() : std::min(end, origin.size()));
    if (origin.starts_with(':')) port = origin.substr(1, origin.find('/') - 1);
    if (port.empty()) port = equal_letters(scheme, "https") ? "443" : "80";
  }

  bool operator==(const Site&) const = default;

  std::string name, port;
};

/// Names that nobody else can point at this machine, and that of --host.
bool is_own_name(const std::string& name, const HttpRequest& request) {
  const bool is_address = name.starts_with('[') ||
                          (!name.empty() && name.find_first_not_of("0123456789.") == name.npos);
  if (name.empty() || is_address) return is_address;
  return name == "localhost" || name == lower(request.local_host) ||
         name == lower(boost::asio::ip::host_name());
}

}  // namespace

void Service::ready() {
  page_ = live_page(models_, !options_.keys.empty());
  info_ = info_json(models_, options_);
  openapi_ = openapi_json();
  ready_ = true;
}

std::string Service::next_id() {
  const auto since =
      std::chrono::duration_cast<std::chrono::milliseconds>(started_.time_since_epoch());
  return fmt::format("{:x}-{}", since.count(), ++requests_);
}

bool Service::has_key(std::string_view authorization) const {
  constexpr std::string_view kBearer = "bearer ";
  if (!equal_letters(authorization.substr(0, kBearer.size()), kBearer)) return false;
  bool is_one = false;  // all are compared, so that the time tells nothing
  for (const std::string& key : options_.keys)
    is_one |= equal_keys(authorization.substr(kBearer.size()), key);
  return is_one;
}

/// Pages of other sites may not ask: neither one that sends its own origin, nor one whose owner has
/// pointed a name at this machine, so that a browser takes its pages for ours and sends no origin
/// with GET. A link to the page is followed.
Failure Service::foreign(const HttpRequest& request) const {
  const auto refused = [](const std::string& who, const std::string& remedy) -> Failure {
    return {403, "Forbidden", fmt::format("{} may not ask this server{}", who, remedy)};
  };
  const auto is_allowed = [&](const std::string& name) {
    return std::ranges::any_of(options_.hosts,
                               [&](const std::string& each) { return Site(each).name == name; });
  };
  // Where others reach the server, they give it names that it does not know.
  if (!request.local_host.empty() && options_.keys.empty() && !request.host.empty()) {
    const std::string name = Site(request.host).name;
    if (!is_own_name(name, request) && !is_allowed(name))
      return {403, "Forbidden",
              fmt::format("{:.200} is no name of this machine, so a page of another site could be "
                          "asking; --allow-host {:.200} allows it",
                          request.host, name)};
  }
  const bool is_link = equal_letters(request.fetch_mode, "navigate") && request.path == "/" &&
                       request.method == "GET" && request.origin.empty();
  if (equal_letters(request.fetch_site, "cross-site") && !is_link)
    return refused("a page of another site", "");
  if (request.origin.empty()) return {};
  const size_t scheme = request.origin.find("://");  // none in "null"
  if (scheme == std::string::npos) return refused("a page without an address", "");
  const std::string kind = request.origin.substr(0, scheme);  // an app's pages have its own
  const bool is_web = equal_letters(kind, "http") || equal_letters(kind, "https");
  const Site origin(request.origin), host(request.host, kind);
  const bool is_own = is_web && origin == host && is_own_name(host.name, request);
  if (is_own || is_allowed(origin.name)) return {};
  return refused(fmt::format("a page of {:.200}", request.origin),
                 fmt::format("; --allow-host {:.200} lets it", origin.name));
}

Failure Service::refusal(const HttpRequest& request) const {
  const Route* const route = route_of(request.method, request.path);
  if (request.status != 0) return {request.status, "Http", request.problem};
  if (Failure failure = foreign(request); failure.status != 0) return failure;
  const bool is_open = route != nullptr && route->is(Route::kOpen) && route->takes(request.method);
  if (!options_.keys.empty() && !is_open && !has_key(request.authorization))
    return {401, "Unauthorized", "the key is missing or wrong; send \"Authorization: Bearer KEY\""};
  if (route == nullptr) return {404, "NotFound", fmt::format("there is no {}", request.path)};
  if (!route->takes(request.method))
    return {
        405, "MethodNotAllowed",
        fmt::format("{} takes {}, not {}", request.path, methods_at(request.path), request.method)};
  if (route->method == "POST") {
    if (Failure failure = unread_body(*route, request); failure.status != 0) return failure;
  }
  if (!ready_) return {503, "Unhealthy", "the models are being loaded"};
  if (draining_) return {503, "Unhealthy", "the server is going down"};
  return {};
}

void Service::serve(HttpRequest request, HttpReply reply, std::stop_token gone) {
  const auto exchange =
      std::make_shared<Exchange>(*this, std::move(request), std::move(reply), std::move(gone));
  exchange->route = route_of(exchange->request.method, exchange->request.path);
  exchange->attempt([&] {
    const Failure failure = refusal(exchange->request);
    if (failure.status != 0) return exchange->fail(failure);
    exchange->as(exchange->route->handle);
  });
}

void Service::record(std::string_view path, const Served& served) {
  metrics_.request(path, served.model, served.status, served.seconds);
  if (log_) log_(served);
}

bool equal_letters(std::string_view a, std::string_view b) {
  return a.size() == b.size() && lower(a) == lower(b);
}

bool equal_keys(std::string_view given, std::string_view key) {
  unsigned char difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i] ^ key[key.empty() ? 0 : i % key.size()]);
  return difference == 0;
}

}  // namespace infer
