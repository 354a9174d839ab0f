// Loaded into the process of every test file. It limits the duration of each test, hook and teardown, keeps the process
// alive while tests run, fails a file that leaves resources open, and records how much time the file needed.
import { appendFileSync, readFileSync } from 'node:fs';
import './test-group.mjs';
import test, { registerCompletionHandler } from 'ava';
import Runnable from '../node_modules/ava/lib/test.js';

/**
 * Limit of a test, a hook and its teardowns, each counted from its last assertion. It is below the idle limit of the
 * runner (`timeout` in ava.config.js), which ends every running file and does not name the test. `t.timeout()` in a
 * test sets another limit.
 */
const testLimitMs = 90_000;
/** Time limit until the first test begins. It includes packages that a file installs and tools that it compiles. */
const startLimitMs = 15 * 60_000;
/** Time after the last test until the process must have ended. */
const endLimitMs = 30_000;

/** Of AVA's internals only these two methods are used; another version of AVA that lacks them is noticed here. */
const { run, runTeardowns } = Runnable.prototype;
if (run === undefined || runTeardowns === undefined) throw new Error('this version of AVA has another lib/test.js');

function fail(message) {
  process.stderr.write(
    `${test.meta.file}: ${message}; open resources: ${process.getActiveResourcesInfo().join(', ')}\n`,
  );
  process.exit(1);
}

const starting = setTimeout(() => fail(`no test began within ${startLimitMs / 60_000} minutes`), startLimitMs);

Runnable.prototype.run = function runWithLimit() {
  clearTimeout(starting);
  this.timeout(testLimitMs, `not finished within ${testLimitMs / 1000} s`);
  return run.call(this);
};

Runnable.prototype.runTeardowns = async function runTeardownsWithLimit() {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, testLimitMs, true);
  });
  if (await Promise.race([runTeardowns.call(this), late]))
    this.saveFirstError(new Error(`the teardowns did not finish within ${testLimitMs / 1000} s`));
  clearTimeout(timer);
};

// Timers of the project's clock are unreferenced and do not keep the process alive; this one does.
const keepsAlive = setInterval(() => {}, 2 ** 30);

/** User and system time of this process and of the child processes that have ended, in milliseconds. */
function cpuMs() {
  const fields = readFileSync('/proc/self/stat', 'latin1')
    .replace(/^.*\) /, '')
    .split(' ');
  const [user, system, childUser, childSystem] = fields.slice(11, 15).map((ticks) => Number(ticks) * 10);
  return { own: user + system, children: childUser + childSystem };
}

registerCompletionHandler(() => {
  clearInterval(keepsAlive);
  clearTimeout(starting);
  setTimeout(() => fail(`the file did not end within ${endLimitMs / 1000} s after its last test`), endLimitMs).unref();
  const times = process.env['KEELSON_TEST_TIMES'];
  if (times === undefined) return;
  process.once('exit', () => {
    const { file } = test.meta;
    appendFileSync(times, `${JSON.stringify({ file, wallMs: Math.round(performance.now()), ...cpuMs() })}\n`);
  });
});
