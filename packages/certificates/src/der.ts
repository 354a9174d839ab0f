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

/** Tag octets of the types in certificates, requests and revocation lists. */
export const Tag = {
  Boolean: 0x01,
  Integer: 0x02,
  BitString: 0x03,
  OctetString: 0x04,
  ObjectIdentifier: 0x06,
  Utf8String: 0x0c,
  PrintableString: 0x13,
  UtcTime: 0x17,
  GeneralizedTime: 0x18,
  Sequence: 0x30,
  Set: 0x31,
} as const;

/** Maximum octets of a length; sufficient for every request and list. */
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

/** A time as Date. @throws DerError */
export function timeOf(value: DerValue | undefined): Date {
  const text = value?.content.toString('latin1') ?? '';
  const parts =
    value?.tag === Tag.UtcTime
      ? /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(text)
      : value?.tag === Tag.GeneralizedTime && /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (!parts) throw new DerError('a time is missing or has another form');
  const [, year = '', month, day, hour, minute, second] = parts;
  // RFC 5280, 4.1.2.5.1: two digits mean the years 1950 to 2049.
  const century = year.length === 4 ? '' : Number(year) < 50 ? '20' : '19';
  return new Date(`${century}${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

/** Encodes a value of DER from its parts. */
export function encodeDer(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const header = [tag];
  if (length < 0x80) header.push(length);
  else {
    const octets = Math.ceil((32 - Math.clz32(length)) / 8);
    header.push(0x80 | octets);
    for (let shift = (octets - 1) * 8; shift >= 0; shift -= 8) header.push((length >>> shift) & 0xff);
  }
  return Buffer.concat([Buffer.from(header), ...parts]);
}

export const encodeSequence = (...parts: readonly Uint8Array[]): Buffer => encodeDer(Tag.Sequence, ...parts);

/** Encodes an object identifier in dotted form whose first two numbers are below 40. */
export function encodeOid(text: string): Buffer {
  const [first = 0, second = 0, ...arcs] = text.split('.').map(Number);
  const octets = [first * 40 + second];
  for (const arc of arcs) {
    const groups = [arc % 128];
    for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) groups.unshift(0x80 | (rest % 128));
    octets.push(...groups);
  }
  return encodeDer(Tag.ObjectIdentifier, Buffer.from(octets));
}

/** Encodes whole octets as a bit string. */
export const encodeBits = (octets: Uint8Array, unusedBits = 0): Buffer =>
  encodeDer(Tag.BitString, Buffer.from([unusedBits]), octets);

/** Encodes a time in whole seconds: as UTCTime until 2049, and as GeneralizedTime afterwards (RFC 5280, 4.1.2.5). */
export function encodeTime(time: Date): Buffer {
  const digits = `${time.toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`;
  const short = time.getUTCFullYear() < 2050;
  return encodeDer(short ? Tag.UtcTime : Tag.GeneralizedTime, Buffer.from(short ? digits.slice(2) : digits));
}

/** PEM with lines of 64 characters. */
export function pem(label: string, content: Buffer): string {
  const lines = content.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
