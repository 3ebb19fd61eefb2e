"""Runs of pagedkv in Python: exact simulation of paged KV caches, with NumPy arrays of what happened.

    import pagedkv

    run = pagedkv.run("scenarios/sample.yaml", {"kv.num_blocks": 2000})
    run.steps["free_blocks"].min()              # a column of steps.csv
    run.requests["queue_ns"].mean() / 1e6       # a column of requests.csv
    run.summary["latency_ms"]["ttft"]["p99"]    # summary.json
    run.steps_frame().plot("time_ns", "free_blocks")   # pandas

    run = pagedkv.replay("trace.jsonl", num_blocks=2000, block_size=16)
    for run in pagedkv.compare("scenarios/sample.yaml", {"kv.num_blocks": [512, 1024, 2048]}):
        print(run.varied, run.summary["preemptions"])

It loads the shared library libpagedkv by ctypes, so there is nothing to compile but pagedkv itself. It
needs NumPy; pandas only for frames. The results are those of `pagedkv run`, to the last digit.

Arrays. The columns of steps.csv and requests.csv, as they are described in pagedkv-files(5). Numbers are
int64; their arrays are read-only and lie in the run's own memory, which lives as long as one of them:
copy them to change them. Frames are copies. Texts (id, status, reason, tenant) are arrays of str (dtype
object). A time that never was (a request that was not admitted has no admitted_ns) is masked:
admitted_ns, first_token_ns, finish_ns, max_gap_ns and queue_ns are numpy.ma arrays with NO_TIME below
the mask. Means, sums and maxima leave masked values out; for numpy.percentile, which does not, take
.compressed(). A Run can be pickled and copied, and so be sent to other processes; copy.deepcopy() and a
pickle have the arrays by their values.

Memory. 224 bytes a row of steps, 104 more with extra=True, 24 a row of gaps, 168 a request and its
texts. every= and on_change= thin steps out as the program's options do; steps=False keeps none.

Threads. Python's lock is released while a run is under way, so runs in several threads go side by side
and do not touch each other. Ctrl-C ends a run: KeyboardInterrupt, whose attribute `run` has what was
done until then.

Errors. Error for wrong input, with .path, .line and .column; TypeError and ValueError for a wrong call;
MemoryError when there is no memory. A run that got stuck is no error: look at run.outcome ("done",
"horizon", or else) and run.diagnosis.

The library is looked for in the build of the checkout that this file lies in (build/), beside an
installed module, and where the system has its libraries; the environment variable PAGEDKV_LIBRARY names
another one.
"""
import collections.abc
import concurrent.futures
import contextlib
import ctypes
import decimal
import difflib
import functools
import glob
import html
import importlib
import itertools
import json
import numbers
import operator
import os
import re
import sys
import tempfile
import threading
import time


def _needed(who, name, module):
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:    # it is there, and lacks something itself
            raise
    raise ImportError(f"{who} {name}, which this Python ({sys.executable}) does not have; apt install "
                      f"python3-{module} gives it to the system's, /usr/bin/python3")


np = _needed("pagedkv needs", "NumPy", "numpy")

__all__ = ["NO_TIME", "Error", "Run", "compare", "replay", "run", "table"]

NO_TIME = int(np.iinfo(np.int64).min)     # in place of a time that never was
_STEPS, _EXTRA, _GAPS, _REQUESTS, _NUM_TABLES = range(5)    # of enum pkv_columns_table
_FILES = {"steps": 1, "requests": 2, "events": 4, "summary": 8, "scenario": 16, "report": 32,
          "cache": 64}
_CODES = ("none", "input", "memory", "io", "audit", "interrupted")
_INT64 = np.dtype(np.int64).str

# The order of requests.csv; what begins with a sign is a text, or masked.
_REQUEST_COLUMNS = ("'id arrival_ns ?admitted_ns ?first_token_ns ?finish_ns 'status 'reason prompt_tokens "
                    "output_tokens hit_tokens recomputed_tokens preemptions peak_blocks ?max_gap_ns "
                    "?queue_ns 'tenant priority").split()

# What `pagedkv replay` takes, and the keys of a scenario that its flags stand for.
_REPLAY = {
    "num_blocks": "kv.num_blocks", "num_gpu_blocks": "kv.num_gpu_blocks", "kv_budget": "kv.budget",
    "model": "kv.model", "kv_dtype": "kv.dtype", "tp": "kv.tp", "pp": "kv.pp", "pp_layers": "kv.pp_layers",
    "block_size": "kv.block_size", "prefix_cache": "kv.prefix_cache", "preset": "scheduler.preset",
    "max_num_seqs": "scheduler.max_num_seqs",
    "max_num_batched_tokens": "scheduler.max_num_batched_tokens",
    "max_model_len": "scheduler.max_model_len", "step_time": "step_time", "format": "traffic.format",
    "columns": "traffic.columns", "time_unit": "traffic.time_unit",
    "hash_block_size": "traffic.hash_block_size", "speedup": "traffic.speedup", "limit": "traffic.limit",
    "after": "measure.after", "until": "measure.until", "sort": "traffic.sort",
    "lenient_ids": "traffic.lenient_ids", "seed": "traffic.seed",
}


class Error(Exception):
    """What was wrong, in one sentence, and where.

    path    the file; "<text>" or "<dict>" for a scenario that is none; "settings", or a keyword of replay();
            "" = nowhere
    line    from 1; 0 = no line. In a dict: the number of its key on the outermost level
    column  from 1, in bytes; 0 = no column
    text    the sentence
    code    "input", "io" (a file could not be written), "audit" (check=True found a broken invariant)
    """

    def __init__(self, code, path, line, column, text):
        place = "".join(f"{part}:" for part in (path, line or "", column or "") if part)
        super().__init__(f"{place} {text}" if place else text)
        self.code, self.path, self.line, self.column, self.text = code, path, line, column, text

    def __reduce__(self):       # copied, and sent to other processes, by all that it was made of
        return type(self), (self.code, self.path, self.line, self.column, self.text), self.__dict__


# ---- the library ----

class _Err(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("path", ctypes.c_char * 512), ("line", ctypes.c_uint64),
                ("column", ctypes.c_uint32), ("text", ctypes.c_char * 512)]


class _Setting(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in ("key", "value", "origin")]


class _ColumnsConfig(ctypes.Structure):
    _fields_ = [("has_table", ctypes.c_bool * _NUM_TABLES),
                ("every", ctypes.c_uint64), ("on_change", ctypes.c_bool)]


class _Config(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("text", ctypes.c_char_p), ("text_name", ctypes.c_char_p),
                ("settings", ctypes.POINTER(_Setting)), ("num_settings", ctypes.c_size_t),
                ("dir", ctypes.c_char_p), ("files", ctypes.c_uint), ("check", ctypes.c_bool),
                ("columns", _ColumnsConfig)]


def _find_library():
    named = os.environ.get("PAGEDKV_LIBRARY")
    if named:
        return named
    here = os.path.dirname(os.path.realpath(__file__))
    checkout = os.path.join(here, "..", "..", "build", "src", "libpagedkv.so.0")
    prefix = os.path.join(here, "..", "..")     # of lib/python3/dist-packages
    beside = [*glob.glob(os.path.join(prefix, "libpagedkv.so.0")),
              *glob.glob(os.path.join(prefix, "*", "libpagedkv.so.0"))]
    for path in (checkout, *sorted(beside)):
        if os.path.exists(path):
            return os.path.realpath(path)
    return "libpagedkv.so.0"


def _load():
    path = _find_library()
    try:
        lib = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"cannot load the library of pagedkv: {error}; build it (tools/quickstart or "
                          "meson compile -C build), install it, or name it in PAGEDKV_LIBRARY") from error
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    err = ctypes.POINTER(_Err)
    for name, result, arguments in (
            ("pkv_version", text, []),
            ("pkv_sim_create", pointer, [ctypes.POINTER(_Config), err]),
            ("pkv_sim_destroy", None, [pointer]),
            ("pkv_sim_run", ctypes.c_int, [pointer, err]),
            ("pkv_sim_stop", None, [pointer]),
            ("pkv_sim_finish", ctypes.c_int, [pointer, ctypes.c_int64, err]),
            ("pkv_sim_summary_json", text, [pointer]),
            ("pkv_sim_scenario_yaml", text, [pointer]),
            ("pkv_sim_diagnosis", text, [pointer]),
            ("pkv_sim_columns", pointer, [pointer]),
            ("pkv_columns_num_rows", size, [pointer, ctypes.c_int]),
            ("pkv_columns_num", size, [ctypes.c_int]),
            ("pkv_columns_name", text, [ctypes.c_int, size]),
            ("pkv_columns_values", pointer, [pointer, ctypes.c_int, size]),
            ("pkv_columns_texts", pointer, [pointer, ctypes.POINTER(size)]),
            ("pkv_request_status_name", text, [ctypes.c_int])):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


_lib = _load()
__version__ = _lib.pkv_version().decode()


def _fail(err):
    if _CODES[err.code] == "memory":
        raise MemoryError(err.text.decode("utf-8", "replace"))
    raise Error(_CODES[err.code], os.fsdecode(err.path), err.line, err.column,
                err.text.decode("utf-8", "replace"))


# ---- what is asked for ----

def _nearest(word, words):
    near = difflib.get_close_matches(str(word), words, 1)
    return f"the nearest is '{near[0]}'" if near else f"known: {', '.join(words)}"


def _whole(what, value, largest=None):
    """A number from 1 on."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is a whole number, not {value!r}") from None
    if number < 1 or largest and number > largest:
        raise ValueError(f"{what} is {number}; it goes from 1" + (f" to {largest}" if largest else ""))
    return number


def _path(what, value, kinds="a path"):
    try:
        path = os.fsdecode(value)
    except TypeError:
        raise TypeError(f"{what} is {kinds}, not {type(value).__name__}") from None
    if not path:
        raise ValueError(f"{what}: the path is empty")
    if "\0" in path:
        raise ValueError(f"{what}: a NUL character has no place in a path")
    return path


def _dict(what, value):
    if not isinstance(value, collections.abc.Mapping):
        raise TypeError(f"{what} is a dict of keys and values, not {type(value).__name__}")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"{what}: a key is a str, not {key!r}")
    return dict(value)


def _files(files):
    """Bits of enum pkv_file."""
    if isinstance(files, str):
        files = [word.strip() for word in files.split(",")]
    if not isinstance(files, collections.abc.Iterable):
        raise TypeError(f"files is a list of words, not {type(files).__name__}")
    bits = 0
    for word in files:
        if not isinstance(word, str) or word not in _FILES:
            raise ValueError(f"files: unknown file {word!r}; {_nearest(word, _FILES)}")
        bits |= _FILES[word]
    if not bits:
        raise ValueError("files names none; leave it out for all of them")
    return bits


def _options(caller, options, others=()):
    """Those of run(), looked at before anything begins. others = what the caller takes besides."""
    for word in options:
        if word not in _OPTIONS:
            raise TypeError(f"{caller}() has no keyword '{word}'; {_nearest(word, [*_OPTIONS, *others])}")
    looked_at = {**_OPTIONS, **options}
    looked_at["every"] = _whole("every", looked_at["every"], 2**64 - 1)
    if looked_at["out"] is not None:
        looked_at["out"] = _path("out", looked_at["out"])
    if looked_at["files"] is not None:
        if looked_at["out"] is None:
            raise ValueError("files is about the files in a folder, and no out says in which one")
        looked_at["files"] = _files(looked_at["files"])
    return looked_at


# ---- scenarios and settings as YAML ----

_PLAIN = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.+/-]*")
_NO_LISTS = (bytes, bytearray, memoryview, collections.abc.Set)     # the last have no order


def _yaml(value):
    """A value in YAML's flow style. A word stands as it is, so that "40GiB" and "1ms" are quantities: to
    the reader of scenarios each is the text that it looks like, but null."""
    if value is None:
        return "null"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return format(decimal.Decimal(repr(float(value))), "f")
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and value != "null" else json.dumps(value, ensure_ascii=False)
    if isinstance(value, os.PathLike):
        return json.dumps(os.fsdecode(value), ensure_ascii=False)
    if isinstance(value, np.ndarray):
        return _yaml(value.tolist())
    if isinstance(value, collections.abc.Mapping):
        return "{" + ", ".join(f"{_yaml(key)}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, collections.abc.Iterable) and not isinstance(value, _NO_LISTS):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    raise TypeError(f"{type(value).__name__} has no place in a scenario: {value!r}")


def _path_text(path):
    """As a setting: one that looks quoted is not."""
    return "./" + path if path[:1] in ("'", '"') else path


def _setting_text(value):
    """Texts are YAML already."""
    if isinstance(value, os.PathLike):
        return _path_text(os.fsdecode(value))
    return value if isinstance(value, str) else _yaml(value)


def _encode(text):
    if "\0" in text:
        raise ValueError("a NUL character has no place in a scenario or a setting")
    try:
        return os.fsencode(text)
    except UnicodeEncodeError as error:
        around = text[max(error.start - 20, 0):error.end]
        raise ValueError("half of a surrogate pair has no place in a scenario or a setting; it is where "
                         f"{around!r} ends") from None


def _settings(given, origin="settings"):
    """A list of _Setting; origin stands for the path in errors."""
    made = []
    for key, value in given.items():
        try:
            text = _setting_text(value)
        except TypeError as error:
            raise TypeError(f"{origin}: {key}: {error}") from None
        made.append(_Setting(_encode(key), _encode(text), _encode(origin)))
    return made


# ---- one run ----

class _Sim:
    """The library's run. Arrays refer to it, and the last one to go gives its memory back."""

    def __init__(self):
        self.pointer = None
        self.has_run = self.stopped = False
        self.lock = threading.Lock()    # of pointer and stopped, for stop() from another thread

    def __reduce__(self):
        raise TypeError("the library's run cannot be copied; a Run can")

    @property
    def address(self):
        if not self.pointer:
            raise ValueError("the library's run is closed, or was never made")
        return self.pointer

    def create(self, config):
        err = _Err()
        pointer = _lib.pkv_sim_create(ctypes.byref(config), ctypes.byref(err))
        if not pointer:
            _fail(err)
        with self.lock:
            self.pointer = pointer
            if self.stopped:
                _lib.pkv_sim_stop(pointer)

    def stop(self):
        """From any thread, also before create."""
        with self.lock:
            self.stopped = True
            if self.pointer:
                _lib.pkv_sim_stop(self.pointer)

    def close(self):
        with self.lock:
            pointer, self.pointer = self.pointer, None
        if pointer and _lib:
            _lib.pkv_sim_destroy(pointer)

    def go(self):
        """What fails is closed now: an exception that somebody keeps would keep files half written."""
        if self.has_run:
            raise ValueError("the library's run has run")
        self.has_run = True
        err, again, begin = _Err(), _Err(), time.perf_counter_ns()
        failed = _lib.pkv_sim_run(self.address, ctypes.byref(err)) < 0
        if not failed or _CODES[err.code] != "input":      # else nothing is kept, as by the program
            wall_ns = time.perf_counter_ns() - begin
            if _lib.pkv_sim_finish(self.address, wall_ns, ctypes.byref(again)) < 0 and not failed:
                failed, err = True, again
        if failed:
            self.close()
            _fail(err)

    __del__ = close


class _Memory:
    """What numpy.asarray() makes an array of: memory of a run, which it keeps alive."""

    def __init__(self, sim, address, num, typestr):
        self._sim = sim
        self.__array_interface__ = {"version": 3, "data": (address, True), "shape": (num,),
                                    "typestr": typestr}


def _columns(sim, number):
    """All columns of a table: {name: array}."""
    columns = _lib.pkv_sim_columns(sim.address)
    num = _lib.pkv_columns_num_rows(columns, number)
    out = {}
    for i in range(_lib.pkv_columns_num(number)):
        address = _lib.pkv_columns_values(columns, number, i)
        array = np.asarray(_Memory(sim, address, num, _INT64)) if num else np.empty(0, np.int64)
        array.flags.writeable = False
        out[_lib.pkv_columns_name(number, i).decode()] = array
    return out


def _texts(sim):
    length = ctypes.c_size_t()
    address = _lib.pkv_columns_texts(_lib.pkv_sim_columns(sim.address), ctypes.byref(length))
    return ctypes.string_at(address, length.value) if length.value else b""


def _text_array(texts, begins, lengths):
    """An array of str; equal texts that lie in one place are one str."""
    known = {}
    out = np.empty(len(begins), dtype=object)
    for i, place in enumerate(zip(begins.tolist(), lengths.tolist())):
        if place not in known:
            known[place] = texts[place[0]:place[0] + place[1]].decode("utf-8", "replace")
        out[i] = known[place]
    return out


def _status_array(codes):
    words = [_lib.pkv_request_status_name(code).decode() for code in range(int(codes.max(initial=0)) + 1)]
    return np.array(words, dtype=object)[codes]


def _request_columns(sim):
    values, texts = _columns(sim, _REQUESTS), _texts(sim)
    out = {}
    for name in _REQUEST_COLUMNS:
        sign, name = (name[0], name[1:]) if name[0] in "'?" else ("", name)
        if name == "status":
            out[name] = _status_array(values[name])
        elif sign == "'":
            out[name] = _text_array(texts, values[name + "_at"], values[name + "_length"])
        elif sign == "?":
            out[name] = np.ma.array(values[name], mask=values[name] == NO_TIME, fill_value=NO_TIME,
                                    copy=False)
        else:
            out[name] = values[name]
    return out


def _frame(columns):
    pandas = _needed("frames need", "pandas", "pandas")

    def series(values):
        if not isinstance(values, np.ma.MaskedArray):
            return values
        return pandas.arrays.IntegerArray(values.data.copy(), np.ma.getmaskarray(values).copy())

    return pandas.DataFrame({name: series(values) for name, values in columns.items()})


class Run:
    """A run that has ended. See the module about arrays, memory and errors.

    outcome        "done", "horizon", "stuck", "livelock" or "interrupted"
    diagnosis      what a run that got stuck waits for; else ""
    summary        summary.json as a dict; summary_json is its text
    scenario_yaml  the scenario as it ran, every key written out
    steps          {column: array}, the columns of steps.csv; {} with steps=False
    requests       {column: array}, those of requests.csv; {} with requests=False
    extra          with extra=True: {column: array}, beside each row of steps: output_tokens that came out
                   at its end; prompt_tokens, queried_tokens, first_hit_tokens of those admitted for the
                   first time (their prompts, what was looked up, what was found), resumed_queried_tokens,
                   resumed_hit_tokens; reserved_slots, internal_slots, external_slots that lie waste under
                   a layout of runs; table_blocks, the lengths of all block tables; and allocated_total,
                   released_total, copied_total blocks since the beginning (what is held after the last
                   step is not in released_total)
    gaps           with gaps=True: {column: array}: num requests waited gap_ns for their next token, which
                   came out at the end of the step that began at time_ns
    events         with events=True: a list of dicts, the lines of events.jsonl
    settings       those it ran with; varied: of compare(), what this run has of its own
    out            the folder with its files; None = none
    """

    def __init__(self, sim, tables, events):
        self._sim = sim if tables[_REQUESTS] else None
        self.summary_json = _lib.pkv_sim_summary_json(sim.address).decode()
        self.scenario_yaml = _lib.pkv_sim_scenario_yaml(sim.address).decode("utf-8", "surrogateescape")
        self.diagnosis = _lib.pkv_sim_diagnosis(sim.address).decode("utf-8", "replace")
        self.summary = json.loads(self.summary_json)
        self.outcome = self.summary["outcome"]
        self.steps, self.extra, self.gaps = (_columns(sim, number) if tables[number] else {}
                                             for number in (_STEPS, _EXTRA, _GAPS))
        self.events = events
        self.settings, self.varied, self.out = {}, {}, None

    def __getstate__(self):
        """For copies and pickles: the arrays by their values, and nothing of the library."""
        return {**self.__dict__, "requests": self.requests, "_sim": None}

    @functools.cached_property
    def requests(self):     # texts take a moment, and not everybody looks at them
        return _request_columns(self._sim) if self._sim else {}

    def steps_frame(self):
        """steps, and extra where there is one, as a pandas DataFrame."""
        return _frame({**self.steps, **self.extra})

    def requests_frame(self):
        """requests as a pandas DataFrame; times that never were are <NA> (Int64)."""
        return _frame(self.requests)

    def gaps_frame(self):
        return _frame(self.gaps)

    def figures(self):
        """The numbers of summary in one level: {"latency_ms.ttft.p99": ...}."""
        out = {}

        def walk(prefix, value):
            if isinstance(value, dict):
                for key, item in value.items():
                    walk(f"{prefix}.{key}" if prefix else key, item)
            elif isinstance(value, (int, float)):
                out[prefix] = value

        walk("", self.summary)
        return out

    def _shown(self):
        s, latency = self.summary, self.summary["latency_ms"]
        return [("outcome", self.outcome),
                ("requests", f"{s['requests']['completed']:,} of {s['requests']['arrived']:,} completed"),
                ("steps", f"{s['steps']:,}"),
                ("preemptions", f"{s['preemptions']:,}"),
                ("pool", f"{s['blocks']['num_blocks']:,} blocks, {s['mean']['used_frac']:.1%} held"),
                *((name, f"p50 {latency[key]['p50']:,.1f} ms, p99 {latency[key]['p99']:,.1f} ms")
                  for name, key in (("first token", "ttft"), ("each gap", "itl")))]

    def __repr__(self):
        varied = "".join(f"{key}={value}; " for key, value in self.varied.items())
        return f"<pagedkv.Run {varied}" + "; ".join(f"{key}: {value}" for key, value in self._shown()) + ">"

    def _repr_html_(self):
        rows = [*self.varied.items(), *self._shown()]
        return "<table>" + "".join(f"<tr><th>{html.escape(str(key))}</th><td>{html.escape(str(value))}</td>"
                                   "</tr>" for key, value in rows) + "</table>"


def _source(scenario, config):
    if scenario is None:
        return
    if isinstance(scenario, collections.abc.Mapping):
        config.text_name = b"<dict>"
        config.text = _encode("".join(f"{_yaml(key)}: {_yaml(value)}\n" for key, value in scenario.items()))
    elif isinstance(scenario, str) and "\n" in scenario:
        config.text_name, config.text = b"<text>", _encode(scenario)
    else:
        config.path = os.fsencode(_path("scenario", scenario, "a path, a text of YAML or a dict"))


def _read_events(folder):
    with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@contextlib.contextmanager
def _gone_after_errors(path):
    """Folders on the way to path that are made meanwhile, and in which nothing is in the end."""
    missing = []
    while path and not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    try:
        yield
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):      # there is something in it, or it was not made
                os.rmdir(folder)
        raise


@contextlib.contextmanager
def _open_folder(out, needs_one):
    """Where files go: out, or for the events alone a folder that is gone afterwards, or None."""
    if out is not None:
        with _gone_after_errors(out):
            yield out
    elif needs_one:
        with tempfile.TemporaryDirectory(prefix="pagedkv-") as folder:
            yield folder
    else:
        yield None


def _run_here(sim, scenario, settings, *, steps=True, requests=True, extra=False, gaps=False, events=False,
              every=1, on_change=False, check=False, out=None, files=None):
    """In this thread, without a look at signals. settings: a list of _Setting; the rest as _options()
    gives it."""
    bits = files or 0
    if events and (out is None or bits):
        bits |= _FILES["events"]
    tables = (steps, extra, gaps, requests)
    with _open_folder(out, events) as folder:
        config = _Config(dir=None if folder is None else os.fsencode(folder), check=check, files=bits,
                         settings=(_Setting * len(settings))(*settings), num_settings=len(settings),
                         columns=_ColumnsConfig((ctypes.c_bool * _NUM_TABLES)(*map(bool, tables)), every,
                                                on_change))
        _source(scenario, config)
        sim.create(config)
        sim.go()
        made = Run(sim, tables, _read_events(folder) if events else None)
        made.out = out
        return made


_OPTIONS = _run_here.__kwdefaults__


def _surely(call):
    """Also if one more Ctrl-C comes meanwhile."""
    while True:
        try:
            return call()
        except KeyboardInterrupt:
            pass


def _run_watched(scenario, settings, options):
    """The same in a thread of its own, as signals are seen by a main thread that is in Python only."""
    sim, result, ended = _Sim(), {}, threading.Event()

    def work():
        try:
            result["run"] = _run_here(sim, scenario, settings, **options)
        except BaseException as error:    # told by the other thread
            result["error"] = error
        finally:
            ended.set()

    thread = threading.Thread(target=work, name="pagedkv", daemon=True)
    try:
        thread.start()
        ended.wait()
    except BaseException as interrupt:
        _surely(sim.stop)
        if thread.is_alive():       # else it ends as soon as it begins
            ended.wait()
        interrupt.run = result.get("run")
        raise
    if "error" in result:
        raise result["error"]
    return result["run"]


def _run_any(scenario, settings, options):
    if threading.current_thread() is threading.main_thread():
        return _run_watched(scenario, settings, options)
    return _run_here(_Sim(), scenario, settings, **options)


def run(scenario, settings=None, **options):
    """Run a scenario and return a Run.

    scenario   the path of a YAML file (str or PathLike), a text of YAML (a str with a newline in it), or
               the same as a dict. Paths in a file start from its folder, others from the current one
    settings   {"kv.num_blocks": 2000, ...}: keys that win over the scenario's. A value is a number, a
               bool, None, a list, a dict, or a str of YAML; "40GiB" and "1ms" are quantities
    steps, requests         keep these arrays (True)
    extra, gaps, events     keep these as well (False)
    every      keep every nth row of steps (1), a whole number up to 2**64 - 1
    on_change  keep a row of steps only if a count in it differs from the last kept row (False)
    check      recount every invariant after each step (False)
    out        also write the files of `pagedkv run -o` to this folder
    files      only these of them: a list of "steps", "requests", "events", "summary", "scenario",
               "report", "cache", or the same in one str, parted by commas; wants out

    Raises Error, MemoryError, KeyboardInterrupt (with what was done until then in its .run)."""
    options = _options("run", options, ("settings",))
    given = _dict("settings", {} if settings is None else settings)
    made = _run_any(scenario, _settings(given), options)
    made.settings = given
    return made


def replay(trace, settings=None, **keywords):
    """Run a trace, as `pagedkv replay` does, and return a Run.

    Keywords are the flags of that program with _ for -: num_blocks (or num_gpu_blocks, or kv_budget with
    model) is required; prefix_cache=False is --no-prefix-cache. Others are those of run(). settings win
    over them."""
    flags = {key: keywords.pop(key) for key in list(keywords) if key in _REPLAY}
    options = _options("replay", keywords, ("settings", *_REPLAY))
    wins = _dict("settings", {} if settings is None else settings)
    given = [_Setting(b"traffic.trace", os.fsencode(_path_text(_path("trace", trace))), b"trace")]
    for word, value in flags.items():
        given += _settings({_REPLAY[word]: value}, word)
    made = _run_any(None, given + _settings(wins), options)
    made.settings = {_REPLAY[word]: value for word, value in flags.items()} | wins
    return made


def _combinations(vary):
    """A list of dicts, the first key changing slowest."""
    values = _dict("vary", vary)
    for key, listed in values.items():
        if (not isinstance(listed, collections.abc.Iterable) or
                isinstance(listed, (str, collections.abc.Mapping, *_NO_LISTS))):
            raise TypeError(f"vary: {key}: a list of values belongs here, not {type(listed).__name__}")
        values[key] = list(listed)
        if not values[key]:
            raise ValueError(f"vary: {key}: the list of values is empty")
    return [dict(zip(values, combination)) for combination in itertools.product(*values.values())]


_NAME_BYTES = 200     # a file system takes 255


def _folder_names(combinations):
    """One of its own for each, after what it varies; "" = nothing is varied."""
    def word(text):
        return re.sub(r"[^\w.+-]+", "_", text)

    names = []
    for varied in combinations:
        name = ",".join(f"{word(key)}={word(_setting_text(value))}" for key, value in varied.items())
        names.append(name.encode()[:_NAME_BYTES].decode("utf-8", "ignore"))
    return names if len(set(names)) == len(names) else [f"{i}-{name}" for i, name in enumerate(names)]


def compare(scenario, vary, settings=None, *, jobs=None, **options):
    """Run a scenario with every combination of values and return the list of Runs, the first key changing
    slowest. run.varied tells the values of each.

    vary       {"kv.num_blocks": [512, 1024], "scheduler.preempt": ["newest", "least_lost"]}
    jobs       runs side by side, from 1; as many as there are processors
    options    those of run(); steps=False keeps memory small. In the folder out each run has a folder of
               its own, named after what it varies ("kv.num_blocks=512,scheduler.preempt=newest"); run.out
               tells it

    The first error of the combinations in their order is raised, and the others are stopped."""
    options = _options("compare", options, ("settings", "jobs"))
    common = _dict("settings", {} if settings is None else settings)
    combinations = _combinations(vary)
    num_threads = min(_whole("jobs", os.cpu_count() or 1 if jobs is None else jobs), len(combinations))
    out = options["out"]
    folders = ([os.path.join(out, name) if name else out for name in _folder_names(combinations)]
               if out else [None] * len(combinations))
    sims = [_Sim() for _ in combinations]

    def one(number):
        given = {**common, **combinations[number]}
        made = _run_here(sims[number], scenario, _settings(given), **{**options, "out": folders[number]})
        made.settings, made.varied = given, combinations[number]
        sims[number] = None     # arrays keep what they need
        return made

    def stop():
        for sim in list(sims):
            if sim is not None:
                sim.stop()

    with _gone_after_errors(out), concurrent.futures.ThreadPoolExecutor(num_threads) as pool:
        if out:     # or else one that fails takes it away from the others
            with contextlib.suppress(OSError):      # which they will tell
                os.makedirs(out, exist_ok=True)
        try:
            tasks = [pool.submit(one, number) for number in range(len(combinations))]
            return [task.result() for task in tasks]
        except BaseException:
            _surely(stop)
            _surely(functools.partial(pool.shutdown, wait=False, cancel_futures=True))
            raise


def table(runs):
    """The runs of compare() side by side: a pandas DataFrame, a row each, of what was varied and of all
    figures (see Run.figures)."""
    pandas = _needed("frames need", "pandas", "pandas")

    return pandas.DataFrame([{**made.varied, "outcome": made.outcome, **made.figures()} for made in runs])
