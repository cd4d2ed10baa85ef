// A participant's endpoint for Python: calls, by the long way or as one made before, and its past.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "block.hpp"
#include "engine/endpoint.hpp"
#include "errors.hpp"
#include "known_calls.hpp"
#include "python_engine.hpp"
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

}  // namespace

void bind_endpoint(nb::module_& module) {
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
