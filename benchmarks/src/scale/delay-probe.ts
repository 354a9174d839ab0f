import { renameSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/**
 * Preloaded into a measured server: writes the delays of its event loop since the previous time, in milliseconds, to
 * each file that the standard input names.
 */
const delays = monitorEventLoopDelay({ resolution: 5 });
delays.enable();
process.stdin.setEncoding('utf8').on('data', (line: string) => {
  const file = line.trim();
  const milliseconds = { p99: delays.percentile(99) / 1e6, max: delays.max / 1e6 };
  writeFileSync(`${file}.new`, JSON.stringify(milliseconds));
  renameSync(`${file}.new`, file);
  delays.reset();
});
