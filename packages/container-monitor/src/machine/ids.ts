import { randomBytes } from 'node:crypto';

/** 24 hex digits: safe in file names, cgroup names and command lines. */
export function newId(): string {
  return randomBytes(12).toString('hex');
}

/** Whether {@link newId} could have made it. */
export function isId(text: string): boolean {
  return /^[0-9a-f]{24}$/.test(text);
}
