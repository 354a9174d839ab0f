import { systemClock } from '@keelson/core/runtime';
import { createLineLogger } from '../line-logger.ts';
import { superviseOci } from '../supervisor/supervisor-main.ts';

const terminated = new Promise<void>((resolve) => {
  process.once('SIGTERM', () => resolve());
  process.once('SIGINT', () => resolve());
});
// A full disk or a closed pipe must not end the supervisor.
process.stderr.on('error', () => {});

process.exitCode = await superviseOci({
  argument: process.argv[2],
  logger: createLineLogger(
    (text) => process.stderr.write(text),
    () => systemClock.now(),
    { component: 'supervisor', pid: process.pid },
  ),
  report: (message) => process.send?.(message, undefined, undefined, () => {}),
  terminated,
});
