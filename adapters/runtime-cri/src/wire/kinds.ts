import { at, type FieldKind, message } from './message.ts';

export const text: FieldKind<string> = {
  write: (writer, field, value) => value !== '' && writer.bytes(field, Buffer.from(value, 'utf8')),
  read: (reader) => reader.text(),
};

export const bytes: FieldKind<Uint8Array> = {
  write: (writer, field, value) => value.byteLength > 0 && writer.bytes(field, value),
  read: (reader) => reader.bytes(),
};

export const flag: FieldKind<boolean> = {
  write: (writer, field, value) => writer.flag(field, value),
  read: (reader) => reader.integer() !== 0,
};

/** Integers of any width and sign, and enumerations; exact up to 2^53. */
export const integer: FieldKind<number> = {
  write: (writer, field, value) => writer.integer(field, value),
  read: (reader) => reader.integer(),
};

/** Counters that may need all 64 bits. */
export const counter: FieldKind<bigint> = {
  write: (writer, field, value) => writer.integer(field, value),
  read: (reader) => reader.bigint(),
};

/** Epoch nanoseconds on the wire, epoch milliseconds as a value. */
export const time: FieldKind<number> = {
  write: (writer, field, value) => writer.integer(field, BigInt(Math.round(value)) * 1_000_000n),
  read: (reader) => Number(BigInt.asIntN(64, reader.bigint()) / 1_000_000n),
};

export function list<T>(kind: FieldKind<T>): FieldKind<readonly T[]> {
  return {
    write: (writer, field, values) => {
      for (const value of values) kind.write(writer, field, value);
    },
    read: (reader, previous) => append(previous, kind.read(reader, undefined)),
  };
}

/** A list of texts, which may be empty texts. */
export const texts: FieldKind<readonly string[]> = {
  write: (writer, field, values) => {
    for (const value of values) writer.bytes(field, Buffer.from(value, 'utf8'));
  },
  read: (reader, previous) => append(previous, reader.text()),
};

export const integers: FieldKind<readonly number[]> = {
  write: (writer, field, values) => values.length > 0 && writer.packed(field, values),
  read: (reader, previous) => {
    if (!reader.isDelimited) return append(previous, reader.integer());
    return reader.within((packed) => {
      const values = [...(previous ?? [])];
      while (!packed.atEnd) values.push(packed.integer());
      return values;
    });
  },
};

const entry = message({ key: at(1, text), value: at(2, text) });

/** A map of texts; keys such as `__proto__` are ordinary keys. */
export const textMap: FieldKind<Readonly<Record<string, string>>> = {
  write: (writer, field, value) => {
    for (const [key, content] of Object.entries(value)) entry.write(writer, field, { key, value: content });
  },
  read: (reader, previous) => {
    const { key = '', value = '' } = entry.read(reader, undefined);
    const map = previous ?? {};
    Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
    return map;
  },
};

/** A number whose absence differs from zero. */
export const wrappedInteger = message({ value: at(1, integer) });
export const wrappedCounter = message({ value: at(1, counter) });

/** Appends in place, because no other code has a reference to the list during decoding. */
function append<T>(previous: readonly T[] | undefined, value: T): readonly T[] {
  if (previous === undefined) return [value];
  (previous as T[]).push(value);
  return previous;
}
