// Loaded into every test file. While its tests run, something holds the process, as a server's port or an agent's loops
// do: timers of the project's clock hold none. Afterwards nothing may: a file that leaves something open fails with the
// names of it, instead of holding up the run.
import { registerCompletionHandler } from 'ava';

const graceMs = 30_000;
const holding = setInterval(() => {}, 2 ** 30);

registerCompletionHandler(() => {
  clearInterval(holding);
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(', ');
    process.stderr.write(`a test file does not end ${graceMs / 1000} s after its last test; still open: ${open}\n`);
    process.exit(1);
  }, graceMs).unref();
});
