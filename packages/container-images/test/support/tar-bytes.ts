/** An entry of an archive, as a friendly or hostile writer would make it. Names are Latin-1. */
export interface TarEntry {
  readonly name: string;
  /** Default: a file. */
  readonly type?: '0' | '1' | '2' | '3' | '4' | '5' | '6' | 'g' | 'L' | 'K';
  readonly content?: string | Buffer;
  readonly linkName?: string;
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  /** Major and minor number of a device. */
  readonly device?: readonly [number, number];
  /** Seconds since the epoch. */
  readonly mtime?: number;
  readonly pax?: Readonly<Record<string, string>>;
}

/** A tar archive of these entries, in this order, with nothing corrected. */
export function tarBytes(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap(entryBlocks), Buffer.alloc(1024)]);
}

function entryBlocks(entry: TarEntry): Buffer[] {
  const pax = Object.entries(entry.pax ?? {}).map(([key, value]) => paxRecord(key, value));
  const extra = pax.length > 0 ? [...blocks({ name: 'pax', content: Buffer.concat(pax) }, 'x')] : [];
  return [...extra, ...blocks(entry, entry.type ?? '0')];
}

function blocks(entry: TarEntry, type: string): Buffer[] {
  const content = Buffer.from(entry.content ?? '');
  const header = Buffer.alloc(512);
  const octal = (value: number, at: number, length: number) =>
    header.write(value.toString(8).padStart(length - 1, '0'), at);
  header.write(entry.name, 0, 100, 'latin1');
  octal(entry.mode ?? (type === '5' ? 0o755 : 0o644), 100, 8);
  octal(entry.uid ?? 0, 108, 8);
  octal(entry.gid ?? 0, 116, 8);
  octal(content.length, 124, 12);
  octal(entry.mtime ?? 1_000_000_000, 136, 12);
  header.write('        ', 148);
  header.write(type, 156);
  header.write(entry.linkName ?? '', 157, 100, 'latin1');
  header.write('ustar\u000000', 257);
  octal(entry.device?.[0] ?? 0, 329, 8);
  octal(entry.device?.[1] ?? 0, 337, 8);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148);
  return [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
}

function paxRecord(key: string, value: string): Buffer {
  const body = Buffer.from(` ${key}=${value}\n`, 'latin1');
  let length = body.length + 1;
  while (String(length).length + body.length !== length) length = String(length).length + body.length;
  return Buffer.concat([Buffer.from(String(length)), body]);
}
