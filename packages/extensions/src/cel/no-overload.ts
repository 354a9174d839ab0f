import { Fault, noSuchOverload } from './base/errors.ts';
import { type CelValue, typeNameOf } from './base/values.ts';

/** Functions whose failure names neither them nor their arguments, as in cel-go. */
const unnamed = new Set(['contains', 'startsWith', 'endsWith', 'flatten']);

const numbers = ['double', 'int', 'uint'];
const times = ['google.protobuf.Duration', 'google.protobuf.Timestamp'];
const ordered = [...numbers, ...times, 'bool', 'bytes', 'string'];
/** Operators and the types of their first operand; for another type, cel-go names the operator. */
const operands: Readonly<Record<string, readonly string[]>> = {
  '_+_': [...numbers, ...times, 'bytes', 'list', 'string'],
  '_-_': [...numbers, ...times],
  '_*_': numbers,
  '_/_': numbers,
  '_%_': ['int', 'uint'],
  '_<_': ordered,
  '_<=_': ordered,
  '_>_': ordered,
  '_>=_': ordered,
};

/** The fault of a call whose arguments have the types of no overload. */
export function noOverload(name: string, args: readonly CelValue[]): Fault {
  if (operands[name]?.includes(typeNameOf(args[0] ?? null)) === false) return new Fault(`no such overload: ${name}`);
  if (!/^[a-z]/.test(name) || unnamed.has(name)) return noSuchOverload;
  if (name === 'size') return new Fault('no such overload: size');
  return new Fault(`no such overload: ${name}(${args.map(typeNameOf).join(', ')})`);
}
