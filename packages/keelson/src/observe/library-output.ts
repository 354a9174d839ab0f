import { format } from 'node:util';
import type { Clock, Logger } from '@keelson/core';
import { RepeatedCauses } from './repeated-causes.ts';

const methods = { debug: 'debug', log: 'info', info: 'info', warn: 'warn', error: 'warn' } as const;

/**
 * Routes what libraries (drivers of databases first of all) print to the console, and warnings of Node.js, to the
 * logger: lines that are not JSON would break a log collector. Each text is logged once, and again from time to time.
 * Returns a function that undoes it.
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
