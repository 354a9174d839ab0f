import { constants } from 'node:os';
import { RuntimeError } from '@keelson/container-runtime';

const numbers: Readonly<Record<string, number>> = constants.signals;

/** Number of `SIGTERM`, `TERM`, `15` or `SIGRTMIN+3`. @throws `InvalidArgument` */
export function signalNumber(text: string): number {
  const name = text.trim().toUpperCase();
  if (/^\d+$/.test(name) && Number(name) >= 1 && Number(name) <= 64) return Number(name);
  const full = name.startsWith('SIG') ? name : `SIG${name}`;
  const realTime = /^SIGRTMIN(?:\+(\d+))?$/.exec(full);
  const number =
    realTime === null ? (Object.hasOwn(numbers, full) ? numbers[full] : undefined) : 34 + Number(realTime[1] ?? 0);
  if (number === undefined || number > 64) throw new RuntimeError('InvalidArgument', `invalid signal "${text}"`);
  return number;
}

/** Name of a signal number, such as `SIGTERM`; undefined for numbers without a name. */
export function signalName(number: number): string | undefined {
  return Object.entries(numbers).find(([, value]) => value === number)?.[0];
}
