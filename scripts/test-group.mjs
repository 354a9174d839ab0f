// Loaded into the process of every test file before AVA's `test`. In the process of a group (scripts/test-groups.mjs)
// each title begins with the file of the test, and the tests of a file start when all of the file before have ended, so
// that a file runs as in a process of its own.
import Runner from '../node_modules/ava/lib/runner.js';
import { refs } from '../node_modules/ava/lib/worker/state.cjs';

const separator = ' › ';

/** Function `test` of AVA, and its properties such as `skip`, for tests whose titles begin with the current file. */
function inFile(chain) {
  return new Proxy(chain, {
    apply(target, self, args) {
      const file = globalThis.keelsonTestFile.replace(/\.test\.js$/, '');
      const [title, implementation, ...values] = typeof args[0] === 'string' ? args : [undefined, ...args];
      // A macro can have a function that makes the title.
      const whole = `${file}${separator}${implementation?.title?.(title, ...values) ?? title}`;
      return Reflect.apply(target, self, [whole, implementation?.exec ?? implementation, ...values]);
    },
    get(target, name) {
      if (name === 'macro' || name === 'meta') return target[name];
      if (name === 'skip' || name === 'failing') return inFile(target[name]);
      if (name === 'default') return inFile(target);
      throw new Error(`${globalThis.keelsonTestFile} uses test.${String(name)}, which needs a process of its own`);
    },
  });
}

/** Delays each test until all tests of the files before have ended. */
function runFileByFile() {
  const { runTest } = Runner.prototype;
  if (runTest === undefined || refs.runnerChain === null) throw new Error('this version of AVA has another runner');
  let current = { file: undefined, start: Promise.resolve(), tests: [] };
  Runner.prototype.runTest = function runInTurn(task, context) {
    const [file] = task.title.split(separator, 1);
    if (file !== current.file) {
      const { start, tests } = current;
      current = { file, start: start.then(() => Promise.allSettled(tests)), tests: [] };
    }
    const test = current.start.then(() => runTest.call(this, task, context));
    current.tests.push(test);
    return test;
  };
}

if (refs.runnerChain.meta.file.includes('/dist/groups/')) {
  runFileByFile();
  refs.runnerChain = inFile(refs.runnerChain);
}
