// `reduce` for Python: checks all it is given, then runs a kernel.
#include "python_reduce.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "buffers.hpp"
#include "errors.hpp"
#include "reduce/reduce.hpp"

namespace nb = nanobind;

namespace roundelay {
namespace {

using namespace reduce;

// Below this many bytes of input, other threads wait less than a hand-over of the GIL would take.
constexpr std::size_t kReleaseFrom = 1 << 17;

// From this many bytes on, a destination that is not read is written past the cache: it does not
// fit into a core's own, and a cached store reads each line before it writes it.
constexpr std::size_t kStreamFrom = 1 << 22;

template <class Names>
std::size_t lookup(std::string_view name, const Names& names, const char* what) {
    std::string all;
    for (std::size_t k = 0; k < names.size(); ++k) {
        if (names[k] == name) return k;
        all += (k == 0 ? "" : ", ") + std::string(names[k]);
    }
    throw BadInput("reduce: there is no " + std::string(what) + " '" + std::string(name) +
                   "'; expected one of " + all);
}

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

std::string text(nb::handle object) { return nb::repr(object).c_str(); }

// A divisor: a whole number from 1 to 2^31 - 1.
Scale divisor(nb::handle object) {
    int overflow = 0;
    const long long value = PyIndex_Check(object.ptr()) != 0
                                ? PyLong_AsLongLongAndOverflow(nb::int_(object).ptr(), &overflow)
                                : 0;
    if (value < 1 || value > std::numeric_limits<std::int32_t>::max()) {
        throw BadInput("reduce: op 'avg' has scale " + text(object) +
                       "; expected how many contributions the sum has, a whole number from 1 to "
                       "2147483647");
    }
    return {static_cast<double>(value), static_cast<std::uint64_t>(value)};
}

Scale whole_factor(Type type, nb::handle object) {
    const std::size_t bits = 8 * item_size(type);
    if (PyIndex_Check(object.ptr()) != 0) {
        const nb::int_ number(object);
        if (is_signed(type)) {
            int overflow = 0;
            const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
            const long long least = std::numeric_limits<std::int64_t>::min() >> (64 - bits);
            if (overflow == 0 && value >= least && value <= ~least) {
                return {1.0, static_cast<std::uint64_t>(value)};
            }
        } else {
            const unsigned long long value = PyLong_AsUnsignedLongLong(number.ptr());
            if (PyErr_Occurred() != nullptr) {
                PyErr_Clear();
            } else if (value <= ~std::uint64_t{0} >> (64 - bits)) {
                return {1.0, value};
            }
        }
    }
    throw BadInput("reduce: op 'premul_sum' has scale " + text(object) + "; expected a value of " +
                   quoted(kTypeNames[index(type)]) + ", as each source is multiplied by it");
}

Scale real_factor(Type type, nb::handle object) {
    double value = PyFloat_AsDouble(object.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        value = std::numeric_limits<double>::quiet_NaN();
    }
    const bool wide = type == Type::float64 || type == Type::complex128;
    const double most = wide ? std::numeric_limits<double>::max()
                             : static_cast<double>(std::numeric_limits<float>::max());
    if (value >= -most && value <= most) return {value, 1};
    throw BadInput("reduce: op 'premul_sum' has scale " + text(object) + "; expected a finite " +
                   std::string(wide ? "float64" : "float32") +
                   ", as each source is multiplied by it");
}

Scale scale_of(Op op, Type type, nb::handle object) {
    const std::string name = quoted(kOpNames[index(op)]);
    if (op != Op::avg && op != Op::premul_sum) {
        if (object.is_none()) return {};
        throw BadInput("reduce: op " + name + " has scale " + text(object) +
                       "; expected none. Only 'avg' and 'premul_sum' take one");
    }
    if (object.is_none()) {
        throw BadInput("reduce: op " + name + " has no scale; expected " +
                       (op == Op::avg ? "how many contributions the sum has, often the number of "
                                        "ranks"
                                      : "the factor of each source"));
    }
    if (op == Op::avg) return divisor(object);
    return is_integer(type) ? whole_factor(type, object) : real_factor(type, object);
}

void check_defined(const Isa& isa, Op op, Type type) {
    if (isa.kernel(op, type) != nullptr) return;
    std::string defined;
    for (std::size_t k = 0; k < kOps; ++k) {
        if (isa.kernel(static_cast<Op>(k), type) == nullptr) continue;
        defined += (defined.empty() ? "" : ", ") + std::string(kOpNames[k]);
    }
    throw BadInput("reduce: op " + quoted(kOpNames[index(op)]) + " is not defined for " +
                   quoted(kTypeNames[index(type)]) + "; expected one of " + defined);
}

// Whether the destination is this source. Other overlap is an error.
bool same_place(const Buffer& to, const Buffer& from, const std::string& what) {
    if (to.data() == from.data()) return true;
    const auto a = reinterpret_cast<std::uintptr_t>(to.data());
    const auto b = reinterpret_cast<std::uintptr_t>(from.data());
    const std::uintptr_t apart = a < b ? b - a : a - b;
    if (apart >= to.size()) return false;
    throw BadInput("reduce: " + what + " overlaps the destination, " + std::to_string(apart) +
                   " bytes apart; expected the same memory or none in common. Try a copy of it");
}

const Isa& default_isa() {
    try {
        return chosen_isa();
    } catch (const std::invalid_argument& bad) {
        throw BadInput(bad.what());
    }
}

const Isa& isa_of(const std::optional<std::string_view>& name) {
    if (!name) return default_isa();
    std::vector<std::string_view> names;
    for (const Isa& isa : isas()) names.push_back(isa.name);
    return isas()[lookup(*name, names, "instruction set of this processor named")];
}

void python_reduce(std::string_view op_name, std::string_view type_name, nb::handle destination,
                   nb::sequence sources, nb::handle scale_object,
                   std::optional<std::string_view> isa_name) {
    const Op op = static_cast<Op>(lookup(op_name, kOpNames, "op"));
    const Type type = static_cast<Type>(lookup(type_name, kTypeNames, "dtype"));
    const Isa& isa = isa_of(isa_name);
    check_defined(isa, op, type);
    const Scale scale = scale_of(op, type, scale_object);

    const Buffer to(destination, true, "reduce: the destination");
    if (to.size() % item_size(type) != 0) {
        throw BadInput("reduce: the destination has " + std::to_string(to.size()) +
                       " bytes; expected a multiple of " + std::to_string(item_size(type)) +
                       ", the size of one " + std::string(type_name));
    }
    std::vector<Buffer> held;
    std::vector<const std::byte*> from;
    bool in_place = false;
    for (nb::handle source : sources) {
        const std::string what = "source " + std::to_string(held.size());
        const Buffer& buffer = held.emplace_back(source, false, "reduce: " + what);
        if (buffer.size() != to.size()) {
            throw BadInput("reduce: " + what + " has " + std::to_string(buffer.size()) +
                           " bytes and the destination " + std::to_string(to.size()) +
                           "; expected equal lengths");
        }
        in_place |= same_place(to, buffer, what);
        from.push_back(buffer.data());
    }
    if (from.empty()) throw BadInput("reduce: there are no sources; expected one or more");

    const std::size_t count = to.size() / item_size(type);
    const bool stream = !in_place && to.size() >= kStreamFrom;
    std::optional<nb::gil_scoped_release> released;
    if (to.size() * from.size() >= kReleaseFrom) released.emplace();
    run(isa, op, type, to.data(), from.data(), from.size(), count, scale,
        stream ? Store::streamed : Store::cached);
}

nb::str python_isa() {
    const std::string_view name = default_isa().name;
    return nb::str(name.data(), name.size());
}

nb::tuple python_isas() {
    nb::list names;
    for (const Isa& isa : isas()) names.append(nb::str(isa.name.data(), isa.name.size()));
    return nb::tuple(names);
}

}  // namespace

void bind_reduce(nb::module_& module) {
    module.def("reduce", python_reduce, nb::arg("op"), nb::arg("dtype"), nb::arg("destination"),
               nb::arg("sources"), nb::arg("scale") = nb::none(), nb::kw_only(),
               nb::arg("isa") = nb::none(),
               "Set destination[i] to sources[0][i] op sources[1][i] op ..., in this order.");
    module.def("isa", python_isa, "The instruction set whose kernels `reduce` uses.");
    module.def("isas", python_isas, "What this processor can run, the least first.");
}

}  // namespace roundelay
