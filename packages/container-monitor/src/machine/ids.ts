import { randomBytes } from 'node:crypto';

/** A random id of 24 hex digits, which is valid in file names, cgroup names and command lines. */
export function newId(): string {
  return randomBytes(12).toString('hex');
}

/** Whether a text has the form of {@link newId}. */
export function isId(text: string): boolean {
  return /^[0-9a-f]{24}$/.test(text);
}
