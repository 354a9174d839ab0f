// Loaded into a server with `node --import`: on SIGUSR2 it writes what a process knows only of itself to the file
// PROCESS_PROBE_FILE names.
import { renameSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Memory after a garbage collection in bytes, the longest delay of the event loop since the last report in ms. */
export interface ProcessReport {
  readonly heapBytes: number;
  readonly externalBytes: number;
  readonly longestDelayMs: number;
  /** Names that Object.prototype should not have. */
  readonly prototypeNames: readonly string[];
}

const file = process.env['PROCESS_PROBE_FILE'];
if (file !== undefined) {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const delay = monitorEventLoopDelay({ resolution: 5 });
  const usual = new Set(Object.getOwnPropertyNames(Object.prototype));
  delay.enable();
  process.on('SIGUSR2', () => {
    const longestDelayMs = delay.max / 1e6;
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    const prototypeNames = Object.getOwnPropertyNames(Object.prototype).filter((name) => !usual.has(name));
    const report: ProcessReport = { heapBytes: heapUsed, externalBytes: external, longestDelayMs, prototypeNames };
    writeFileSync(`${file}.new`, JSON.stringify(report));
    renameSync(`${file}.new`, file);
    // The collection itself is not work that a client caused.
    setImmediate(() => delay.reset());
  });
}
