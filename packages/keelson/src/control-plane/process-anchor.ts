import type { Service } from '@keelson/core';

/** Longest interval that timers take. */
const forever = 2 ** 31 - 1;

/**
 * Keeps the process alive as long as the plane runs. Timers of the plane do not, so without this a program that waits
 * for nothing but the plane (a watch, a controller) would end in the middle.
 */
export function processAnchor(): Service {
  let timer: NodeJS.Timeout | undefined;
  return {
    name: 'process-anchor',
    start: async () => {
      timer = setInterval(() => {}, forever);
    },
    stop: async () => clearInterval(timer),
  };
}
