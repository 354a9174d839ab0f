import { format } from 'node:util';
import type { Clock, Logger } from '@keelson/core/runtime';
import { RepeatedCauses } from './repeated-causes.ts';

const methods = { debug: 'debug', log: 'info', info: 'info', warn: 'warn', error: 'warn' } as const;

/**
 * Redirects the console output of libraries (mostly database drivers) and the warnings of Node.js to the logger: lines
 * that are not JSON would break log collectors. Repeated texts are logged at intervals. Returns a function that ends
 * the redirection.
 */
export function routeLibraryOutput(logger: Logger, clock: Clock): () => void {
  const causes = new RepeatedCauses(clock);
  const report = (level: (typeof methods)[keyof typeof methods], output: string) => {
    const repeated = causes.admit(output);
    if (repeated !== undefined)
      logger[level]('a library printed', { component: 'library', output, ...(repeated > 0 ? { repeated } : {}) });
  };
  const before = { ...console };
  for (const [method, level] of Object.entries(methods)) {
    console[method as keyof typeof methods] = (...values: unknown[]) => report(level, format(...values));
  }
  const listeners = process.listeners('warning');
  const onWarning = ({ name, message }: Error) => report('warn', `${name}: ${message}`);
  process.removeAllListeners('warning');
  process.on('warning', onWarning);
  return () => {
    Object.assign(console, before);
    process.off('warning', onWarning);
    for (const listener of listeners) process.on('warning', listener);
  };
}
