// Loaded into every test file: one that leaves something open fails with the names of it, instead of holding up the whole run.
import { registerCompletionHandler } from 'ava';

const graceMs = 30_000;

registerCompletionHandler(() => {
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(', ');
    process.stderr.write(`a test file does not end ${graceMs / 1000} s after its last test; still open: ${open}\n`);
    process.exit(1);
  }, graceMs).unref();
});
