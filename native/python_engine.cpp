// The engine for Python: nodes, endpoints and tasks, and a short way for calls made before.
#include "python_engine.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "block.hpp"
#include "buffers.hpp"
#include "engine/checksum.hpp"
#include "engine/endpoint.hpp"
#include "errors.hpp"
#include "known_calls.hpp"
#include "ticks.hpp"
#include "views.hpp"

namespace nb = nanobind;

namespace roundelay {
namespace {

using namespace engine;

// Below this many bytes a call keeps the GIL while it goes without waiting.
constexpr std::size_t kReleaseFrom = 256 << 10;

// Gives the GIL away for as long as it lives, from the start or from the first long wait on.
class PythonHost : public Host {
   public:
    PythonHost(bool release, std::atomic<bool>& stop) : stop_(stop) {
        if (release) waiting();
    }
    ~PythonHost() override { take_back(); }
    void waiting() override {
        if (state_ == nullptr) state_ = PyEval_SaveThread();
    }
    bool interrupted() override {
        if (stop_.exchange(false)) return true;
        const bool released = state_ != nullptr;
        take_back();
        const bool raised = PyErr_CheckSignals() != 0;
        if (!raised && released) waiting();
        return raised;
    }
    void take_back() {
        if (state_ != nullptr) PyEval_RestoreThread(std::exchange(state_, nullptr));
    }

   private:
    PyThreadState* state_ = nullptr;
    std::atomic<bool>& stop_;
};

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

// How often this process has been forked from another since it loaded the library.
std::atomic<int>& forks() {
    static std::atomic<int> count{0};
    static const int registered = pthread_atfork(nullptr, nullptr, [] { forks().fetch_add(1); });
    (void)registered;
    return count;
}

// Whether this is the only one that holds the flag; then it gives it back.
struct Turn {
    explicit Turn(std::atomic_flag& flag) : flag(flag), mine(!flag.test_and_set()) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
        if (mine) flag.clear();
    }
    std::atomic_flag& flag;
    bool mine;
};

class PythonEndpoint {
   public:
    PythonEndpoint(std::shared_ptr<Node> node, std::uint32_t local, int participant,
                   std::vector<std::string> participants, std::vector<std::string> collectives,
                   bool crowded, int home, bool keep_gil)
        : endpoint_(std::move(node), local, participant,
                    {std::move(participants), std::move(collectives)}, crowded, home),
          keep_gil_(keep_gil), pid_(getpid()), forks_(forks().load()) {}

    void meet(int participant, std::uint32_t local) { endpoint_.meet(participant, local); }
    void link(int participant, std::vector<int> fds, bool checked) {
        endpoint_.meet(participant, Link(std::move(fds), checked));
    }
    bool knows(int participant) const { return endpoint_.knows(participant); }
    void trace(std::size_t events) { endpoint_.trace(events); }
    void close() {
        if (forks().load() != forks_) return;
        closed_ = true;
        if (busy_.test()) {
            interrupt();
            if (pthread_equal(runner_.load(), pthread_self())) return;  // below a signal's handler
            const nb::gil_scoped_release release;
            while (busy_.test()) usleep(200);
        }
        endpoint_.close();
    }

    // Participants of this node that have not come to the latest call.
    std::vector<int> absent() const { return endpoint_.absent(); }
    void set_patience(double seconds) {
        patience_ = static_cast<std::uint64_t>(std::min(seconds, 1e9) * 1e9);
    }

    // No other thread may make a call from now on, until as many `leave` as `enter`.
    void enter() {
        pthread_t owner{};
        const pthread_t me = pthread_self();
        if (!owner_.compare_exchange_strong(owner, me) && owner != me) refuse();
        ++depth_;
    }
    void leave() {
        if (--depth_ == 0) owner_.store(pthread_t{});
    }

    // Ends the call that another thread is waiting in.
    void interrupt() { stop_ = true; }

    // The events kept, oldest first, as bytes; and how many there were.
    nb::tuple traced() const {
        const Trace* trace = endpoint_.traced();
        if (trace == nullptr) return nb::make_tuple(nb::bytes("", 0), 0);
        const auto& ring = trace->ring();
        const std::uint64_t count = trace->count();
        std::vector<Event> kept;
        for (std::uint64_t i = count - std::min<std::uint64_t>(count, ring.size()); i < count; ++i) {
            kept.push_back(ring[i % ring.size()]);
        }
        return nb::make_tuple(
            nb::bytes(reinterpret_cast<const char*>(kept.data()), kept.size() * sizeof(Event)),
            count);
    }

    bool failed() const { return endpoint_.failed(); }

    // The last calls, oldest first: number, elements, plan, root, collective, type, operation,
    // and when they began and ended, in ns of CLOCK_MONOTONIC; 0 while under way.
    nb::list last_calls() const {
        const Ticks clock;
        nb::list found;
        for (const auto& [call, begun, ended] : endpoint_.last_calls()) {
            found.append(nb::make_tuple(call.sequence, call.elements, call.plan, call.root,
                                        call.collective, call.type, call.op, clock.ns(begun),
                                        ended == 0 ? std::int64_t{0} : clock.ns(ended)));
        }
        return found;
    }

    // Participant, number, ns in all and of the longest, of those that were waited for.
    nb::list waits() const {
        nb::list found;
        int participant = 0;
        for (const Waits& waits : endpoint_.waits()) {
            if (const std::uint64_t times = waits.times.load(std::memory_order_relaxed)) {
                found.append(nb::make_tuple(participant, times,
                                            waits.ns.load(std::memory_order_relaxed),
                                            waits.longest.load(std::memory_order_relaxed)));
            }
            ++participant;
        }
        return found;
    }

    // How many calls there were; and when the last ones began and ended, oldest first, as int64.
    nb::tuple spans() const {
        const Ticks clock;
        const std::uint64_t count = endpoint_.calls();
        std::vector<std::int64_t> kept;
        for (std::uint64_t call = count - std::min<std::uint64_t>(count, Spans::kKept);
             call++ < count;) {
            const Spans::Span& span = endpoint_.spans().of(call);
            kept.push_back(clock.ns(span.begun.load(std::memory_order_relaxed)));
            kept.push_back(clock.ns(span.ended.load(std::memory_order_relaxed)));
        }
        return nb::make_tuple(count, nb::bytes(reinterpret_cast<const char*>(kept.data()),
                                               kept.size() * sizeof(std::int64_t)));
    }

    void run(const std::shared_ptr<Task>& task, nb::handle input, nb::handle output,
             bool in_place) {
        View in;
        View out;
        if (!input.is_none() && !in.take(input, false)) throw BadInput("the input has no buffer");
        if (!output.is_none() && !out.take(output, true)) {
            throw BadInput("the output cannot be written");
        }
        perform(*task, in, out, in_place);
    }

    // Whether the same call has been made before; then it is made again.
    bool call(int collective, nb::handle input, nb::handle output, nb::handle op,
              nb::handle algorithm, nb::handle dtype, nb::handle rank) {
        const long root = PyLong_CheckExact(rank.ptr()) ? PyLong_AsLong(rank.ptr()) : -1;
        if (root < 0 || root > INT32_MAX) {
            PyErr_Clear();
            return false;  // the long way says what is wrong with it
        }
        const Arguments arguments{collective, input, output, op, algorithm, dtype,
                                  static_cast<int>(root)};
        View in;
        View out;
        const Known* known = known_.find(arguments, in, out);
        if (known == nullptr) return false;
        perform(*known->task, in, out, known->in_place);
        return true;
    }

    void remember(int collective, nb::handle input, nb::handle output, nb::handle op,
                  nb::handle algorithm, nb::handle dtype, int root,
                  const std::shared_ptr<Task>& task, bool in_place) {
        known_.keep({collective, input, output, op, algorithm, dtype, root}, task, in_place);
    }

    // A block of memory that others can read in place, for as long as this endpoint lives.
    nb::object shared(std::size_t size) {
        auto made = std::make_unique<Block>(size);
        Block& block = *made;
        blocks_.push_back(nb::cast(std::move(made)));
        try {
            endpoint_.show(block.take_fd(), block.data(), block.size());
        } catch (...) {
            blocks_.pop_back();
            throw;
        }
        return blocks_.back();
    }

   private:
    void perform(Task& task, const View& in, const View& out, bool in_place) {
        if (forks().load(std::memory_order_relaxed) != forks_) {
            throw BadInput("this communicator belongs to process " + std::to_string(pid_) +
                           ", from which this one was forked; make one here with roundelay.init()");
        }
        std::byte* output = out.data() == nullptr ? in.data() : out.data();
        const bool release =
            !keep_gil_ || std::max(task.input_size, task.output_size) >= kReleaseFrom;
        std::optional<Failure> failure;
        // A thread at a time; and not from a signal's handler in the middle of a call.
        const pthread_t owner = owner_.load(std::memory_order_relaxed);
        if (owner != pthread_t{} && owner != pthread_self()) refuse();
        const Turn turn(busy_);
        if (!turn.mine) refuse();
        if (closed_) throw BadInput("the communicator is closed; make another");
        runner_.store(pthread_self(), std::memory_order_relaxed);
        {
            PythonHost host(release, stop_);
            try {
                endpoint_.run(task, {in.data(), output, in_place}, patience_, host);
            } catch (const Failure& found) {
                failure = found;
            }
        }
        if (failure) raise(*failure);
    }

    [[noreturn]] static void refuse() {
        throw BadInput("this communicator is in the middle of a call, by another thread or "
                       "below a signal's handler; make one call at a time, or a communicator "
                       "for each thread with split");
    }

    [[noreturn]] void raise(const Failure& failure) const {
        if (PyErr_Occurred() != nullptr) throw nb::python_error();  // of a signal's handler
        static constexpr const char* kTypes[] = {"PeerLost", "CallsDiffer", "Broken", "TooLate",
                                                 "Interrupted", "BytesChanged"};
        const nb::object type = nb::module_::import_("roundelay.errors")
                                    .attr(kTypes[static_cast<int>(failure.trouble())]);
        const nb::object error = type(failure.what(), failure.participant());
        PyErr_SetObject(type.ptr(), error.ptr());
        throw nb::python_error();
    }

    Endpoint endpoint_;
    std::atomic_flag busy_;
    std::atomic<pthread_t> runner_{};  // who is busy
    std::atomic<bool> closed_{false};
    std::atomic<pthread_t> owner_{};  // who is in a call that takes several runs
    int depth_ = 0;                   // for the owner alone
    std::atomic<bool> stop_{false};
    bool keep_gil_;
    pid_t pid_;
    int forks_;
    std::uint64_t patience_ = 300'000'000'000;
    KnownCalls known_;
    std::vector<nb::object> blocks_;
};

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
    nb::class_<PythonEndpoint>(module, "Endpoint")
        .def(nb::init<std::shared_ptr<Node>, std::uint32_t, int, std::vector<std::string>,
                      std::vector<std::string>, bool, int, bool>())
        .def("meet", &PythonEndpoint::meet)
        .def("link", &PythonEndpoint::link)
        .def("knows", &PythonEndpoint::knows)
        .def("run", &PythonEndpoint::run, nb::arg("task"), nb::arg("input").none(),
             nb::arg("output").none(), nb::arg("in_place"))
        .def("call", &PythonEndpoint::call, nb::arg("collective"), nb::arg("input").none(),
             nb::arg("output").none(), nb::arg("op").none(), nb::arg("algorithm").none(),
             nb::arg("dtype").none(), nb::arg("root").none())
        .def("remember", &PythonEndpoint::remember, nb::arg("collective"), nb::arg("input").none(),
             nb::arg("output").none(), nb::arg("op").none(), nb::arg("algorithm").none(),
             nb::arg("dtype").none(), nb::arg("root"), nb::arg("task"), nb::arg("in_place"))
        .def("shared", &PythonEndpoint::shared)
        .def("trace", &PythonEndpoint::trace)
        .def("traced", &PythonEndpoint::traced)
        .def("last_calls", &PythonEndpoint::last_calls)
        .def("failed", &PythonEndpoint::failed)
        .def("waits", &PythonEndpoint::waits)
        .def("spans", &PythonEndpoint::spans)
        .def("absent", &PythonEndpoint::absent)
        .def("close", &PythonEndpoint::close)
        .def("enter", &PythonEndpoint::enter)
        .def("leave", &PythonEndpoint::leave)
        .def("patience", &PythonEndpoint::set_patience)
        .def("interrupt", &PythonEndpoint::interrupt);
}

}  // namespace roundelay
