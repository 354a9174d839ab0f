/** One value of DER (X.690): its tag octet and the octets of its content. */
export interface DerValue {
  readonly tag: number;
  readonly content: Buffer;
  /** Tag, length and content, which signatures cover. */
  readonly whole: Buffer;
}

/** Bytes that are not valid DER, or not the expected value. */
export class DerError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DerError';
  }
}

/** Tag octets of the types in certificate requests. */
export const Tag = {
  Integer: 0x02,
  BitString: 0x03,
  OctetString: 0x04,
  ObjectIdentifier: 0x06,
  Sequence: 0x30,
  Set: 0x31,
} as const;

/** Maximum octets of a length; sufficient for the maximum size of a request. */
const maxLengthOctets = 4;

function lengthAt(bytes: Buffer, at: number): { readonly length: number; readonly next: number } {
  const first = bytes[at];
  if (first === undefined) throw new DerError('unexpected end of data');
  if (first < 0x80) return { length: first, next: at + 1 };
  const octets = first & 0x7f;
  if (octets === 0 || octets > maxLengthOctets || at + 1 + octets > bytes.length) throw new DerError('invalid length');
  const length = bytes.readUIntBE(at + 1, octets);
  if (length < 0x80 || length < 2 ** (8 * (octets - 1))) throw new DerError('a length is not minimally encoded');
  return { length, next: at + 1 + octets };
}

/** Splits concatenated values. @throws DerError */
export function derValues(bytes: Buffer): DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at] ?? 0;
    if ((tag & 0x1f) === 0x1f) throw new DerError('tags of several octets are not supported');
    const { length, next } = lengthAt(bytes, at + 1);
    const end = next + length;
    if (end > bytes.length) throw new DerError('unexpected end of data');
    values.push({ tag, content: bytes.subarray(next, end), whole: bytes.subarray(at, end) });
    at = end;
  }
  return values;
}

/** The content of a required value with this tag. @throws DerError */
export function expectDer(value: DerValue | undefined, tag: number, what: string): Buffer {
  if (value?.tag !== tag) throw new DerError(`${what} is missing or has another type`);
  return value.content;
}

/** The content of the only value in these bytes. @throws DerError */
export function onlyDer(bytes: Buffer, tag: number, what: string): Buffer {
  const [value, ...more] = derValues(bytes);
  if (more.length > 0) throw new DerError(`trailing data after ${what}`);
  return expectDer(value, tag, what);
}

/** An object identifier in dotted form. @throws DerError */
export function oidText(content: Buffer): string {
  const arcs: number[] = [];
  let arc = 0;
  for (const [index, octet] of content.entries()) {
    arc = arc * 128 + (octet & 0x7f);
    if (arc > Number.MAX_SAFE_INTEGER / 128) throw new DerError('an object identifier is too long');
    if (octet & 0x80) {
      if (index === content.length - 1) throw new DerError('an object identifier is truncated');
      continue;
    }
    arcs.push(arc);
    arc = 0;
  }
  const [first] = arcs;
  if (first === undefined) throw new DerError('an object identifier is empty');
  const root = Math.min(2, Math.floor(first / 40));
  return [root, first - root * 40, ...arcs.slice(1)].join('.');
}
