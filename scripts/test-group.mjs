// Loaded into the process of every test file before AVA's `test`. In the process of a group (scripts/test-groups.mjs)
// each title begins with the file of the test. A file starts when all tests and hooks of the file before have ended,
// and its hooks apply to its tests alone, so that it runs as in a process of its own.
import { pathToFileURL } from 'node:url';
import ContextRef from '../node_modules/ava/lib/context-ref.js';
import Runner from '../node_modules/ava/lib/runner.js';
import { refs } from '../node_modules/ava/lib/worker/state.cjs';

const separator = ' › ';
const fileOf = ({ title }) => title.split(separator, 1)[0];

/** The file that is being imported. */
let currentFile = '';
/** Declarations of tests and hooks of all files. */
const declarations = [];

/** Function `test` of AVA, and its properties such as `serial` and `before`, with titles that begin with the file. */
function inFile(chain) {
  return new Proxy(chain, {
    apply(target, self, args) {
      const file = currentFile;
      const [title = 'hook', implementation, ...values] = typeof args[0] === 'string' ? args : [undefined, ...args];
      declarations.push(() => {
        // A macro can have a function that makes the title.
        const whole = `${file}${separator}${implementation?.title?.(title, ...values) ?? title}`;
        Reflect.apply(target, self, [whole, implementation?.exec ?? implementation, ...values]);
      });
    },
    get(target, name) {
      if (name === 'macro' || name === 'meta') return target[name];
      if (name === 'only') throw new Error(`${currentFile} uses test.only`);
      return typeof target[name] === 'function' ? inFile(target[name]) : target[name];
    },
  });
}

/**
 * Imports the files of a group, one after the other, and then declares their tests at once, because the runner starts
 * with the first one: a file may wait before it declares tests.
 *
 * @param files by the names that their titles begin with, absolute paths
 */
export async function importGroup(files) {
  for (const [name, path] of Object.entries(files)) {
    currentFile = name;
    await import(pathToFileURL(path).href);
  }
  for (const declare of declarations) declare();
}

const { start, runTest, runHooks } = Runner.prototype;

/** The run of one file of a group. */
class FileRun {
  name;
  /** Resolves when the hooks after the tests have ended. */
  ended;
  #runner;
  #context = new ContextRef();
  #begun;
  #results = [];
  #lastSerial = Promise.resolve();

  /** @param hooks the hooks of all files, by their kinds */
  constructor(runner, name, hooks, previous) {
    this.name = name;
    this.#runner = runner;
    const own = (kind) => hooks[kind].filter((hook) => fileOf(hook) === name);
    this.#begun = previous.then(() => {
      // The runner takes hooks of single tests from here; no test of another file runs now.
      for (const kind of ['beforeEach', 'afterEach', 'afterEachAlways']) runner.tasks[kind] = own(kind);
      return runner.runHooks(own('before'), this.#context);
    });
    // All tests of the file have been added by then.
    this.ended = this.#begun
      .then(() => Promise.all(this.#results))
      .then(async (results) => {
        if (results.every(Boolean)) await runner.runHooks(own('after'), this.#context);
        await runner.runHooks(own('afterAlways'), this.#context);
      });
  }

  /** Resolves with the result of a test when the file has ended. Serial tests run before the others. */
  async add(task) {
    const before = this.#lastSerial;
    const test = this.#begun.then(async (hooksPassed) => {
      if (!hooksPassed) return false;
      await (task.metadata.serial ? before : this.#lastSerial);
      return runTest.call(this.#runner, task, this.#context.copy());
    });
    if (task.metadata.serial) this.#lastSerial = test;
    this.#results.push(test);
    await this.ended;
    return test;
  }
}

function runFileByFile() {
  if ([start, runTest, runHooks].includes(undefined)) throw new Error('this version of AVA has another runner');
  let hooks;
  let current = { name: undefined, ended: Promise.resolve() };
  Runner.prototype.start = function startFileByFile() {
    hooks = this.tasks;
    const tests = [...hooks.serial, ...hooks.concurrent];
    tests.sort((one, other) => one.metadata.taskIndex - other.metadata.taskIndex);
    this.tasks = { ...hooks, before: [], after: [], afterAlways: [], serial: [], concurrent: tests };
    return start.call(this);
  };
  Runner.prototype.runTest = function runInTurn(task) {
    const name = fileOf(task);
    if (name !== current.name) current = new FileRun(this, name, hooks, current.ended);
    return current.add(task);
  };
}

if (refs.runnerChain.meta.file.includes('/dist/groups')) {
  runFileByFile();
  refs.runnerChain = inFile(refs.runnerChain);
}
