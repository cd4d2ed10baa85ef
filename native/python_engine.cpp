// The engine for Python: nodes and tasks, and what is tried before it is used.
#include "python_engine.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "block.hpp"
#include "buffers.hpp"
#include "engine/checksum.hpp"
#include "engine/endpoint.hpp"
#include "errors.hpp"
#include "ticks.hpp"

namespace nb = nanobind;

namespace roundelay {
namespace {

using namespace engine;

template <std::size_t N>
std::size_t number_of(std::string_view name, const std::array<std::string_view, N>& names) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) throw BadInput("there is no '" + std::string(name) + "'");
    return static_cast<std::size_t>(found - names.begin());
}

std::span<const std::int64_t> numbers(const Buffer& buffer) {
    return {reinterpret_cast<const std::int64_t*>(buffer.data()),
            buffer.size() / sizeof(std::int64_t)};
}

std::shared_ptr<Task> make_task(nb::handle plan, int participants, nb::handle input,
                                nb::handle output, nb::handle length, std::string_view op,
                                std::string_view type, const nb::dict& options,
                                std::shared_ptr<Counts> counts) {
    const Buffer plan_buffer(plan, false, "the plan");
    const Buffer in(input, false, "the input's places");
    const Buffer out(output, false, "the output's places");
    const Buffer len(length, false, "the pieces' lengths");
    const auto option = [&](const char* name) { return nb::cast<std::uint64_t>(options[name]); };
    Settings settings;
    const auto op_number = number_of(op, reduce::kOpNames);
    settings.op = static_cast<reduce::Op>(op_number);
    settings.type = static_cast<reduce::Type>(number_of(type, reduce::kTypeNames));
    settings.slices = option("slices");
    settings.lag = option("lag");
    settings.streamed = option("streamed") != 0;
    settings.attach_from = option("attach_from");
    settings.divisor = option("divisor");
    Call call;
    call.elements = option("elements");
    call.plan = static_cast<std::uint32_t>(option("plan"));
    call.root = static_cast<std::uint32_t>(option("root"));
    call.collective = static_cast<std::uint8_t>(option("collective"));
    call.type = static_cast<std::uint8_t>(settings.type);
    call.op = static_cast<std::uint8_t>(option("op"));
    auto task = std::make_shared<Task>(Task::make(Plan::read(numbers(plan_buffer), participants),
                                                  {numbers(in), numbers(out), numbers(len)},
                                                  settings, call));
    task->counts = std::move(counts);
    task->counted = option("bytes");
    return task;
}

std::uint64_t ping(nb::handle memory, int role, int rounds) {
    const Buffer buffer(memory, true, "ping: the memory");
    if (buffer.size() < 128) throw BadInput("ping: expected 128 bytes or more");
    auto& mine = *reinterpret_cast<std::atomic<std::uint64_t>*>(buffer.data() + 64 * role);
    auto& other = *reinterpret_cast<std::atomic<std::uint64_t>*>(buffer.data() + 64 * (1 - role));
    const nb::gil_scoped_release release;
    const std::uint64_t begun = now();
    for (std::uint64_t k = 1; k <= static_cast<std::uint64_t>(rounds); ++k) {
        if (role == 0) mine.store(k, std::memory_order_release);
        while (other.load(std::memory_order_acquire) < k) {
            if (now() - begun > 5'000'000'000u) return 0;
        }
        if (role == 1) mine.store(k, std::memory_order_release);
    }
    return (now() - begun) / 2 / static_cast<std::uint64_t>(rounds);
}

// Something to be read, to try whether that is allowed.
constexpr std::uint64_t kSample = 0x726F756E64656C61;

bool attachable(int pid, std::uint64_t address) {
    std::uint64_t found = 0;
    iovec own{&found, sizeof(found)};
    iovec far{reinterpret_cast<void*>(address), sizeof(found)};
    return process_vm_readv(pid, &own, 1, &far, 1, 0) == sizeof(found) && found == kSample;
}

std::uint32_t checksum(nb::handle memory, bool portable) {
    const Buffer buffer(memory, false, "checksum: the bytes");
    return (portable ? crc32c_portable : crc32c)(0, buffer.data(), buffer.size());
}

}  // namespace

void bind_engine(nb::module_& module) {
    loaded();
    nb::list types;
    for (const std::string_view name : reduce::kTypeNames) types.append(name);
    module.attr("types") = nb::tuple(types);
    nb::class_<Node>(module, "Node")
        .def_static("make", [](std::uint32_t participants, std::size_t arena) {
            return std::make_shared<Node>(Node::make(participants, arena));
        })
        .def_static("open", [](int pid, int fd) {
            return std::make_shared<Node>(Node::open(pid, fd));
        })
        .def("claim", &Node::claim)
        .def("populate", &Node::populate)
        .def_prop_ro("fd", &Node::fd)
        .def_prop_ro("arena", &Node::arena_size);
    Block::bind(module);
    nb::class_<Task>(module, "Task");
    nb::class_<Counts>(module, "Counts")
        .def(nb::init<>())
        .def("read", [](const Counts& counts) {
            const auto read = [](const Count& count) { return count.load(std::memory_order_relaxed); };
            return nb::make_tuple(read(counts.calls), read(counts.bytes),
                                  Ticks().length(read(counts.ticks)));
        });
    module.def("task", make_task, nb::arg("plan"), nb::arg("participants"), nb::arg("input"),
               nb::arg("output"), nb::arg("length"), nb::arg("op"), nb::arg("type"),
               nb::arg("options"), nb::arg("counts").none());
    module.def("ping", ping);
    module.def("checksum", checksum, nb::arg("memory"), nb::arg("portable") = false);
    module.def("attachable", attachable);
    module.def("own_address", [] { return reinterpret_cast<std::uint64_t>(&kSample); });
    bind_endpoint(module);
}

}  // namespace roundelay
