/** The bytes of an assembler listing: hexadecimal digits, and comments that begin with a semicolon. */
export function code(listing: string): Buffer {
  return Buffer.from(listing.replace(/;.*$/gm, '').replace(/\s/g, ''), 'hex');
}

/** ELF machine numbers of the supported processor architectures. */
export const elfMachine = { x64: 0x3e, arm64: 0xb7 } as const;

const headerBytes = 64;
const segmentBytes = 56;
const loadAddress = 0x400000;

/**
 * A static executable for Linux. Its single segment is readable and executable; the entry point is the first byte of
 * the code.
 */
export function executable(machine: number, text: Buffer): Buffer {
  const header = Buffer.alloc(headerBytes + segmentBytes);
  const size = header.length + text.length;
  header.write('\x7fELF', 'latin1');
  header.set([2, 1, 1], 4); // 64 bit, little endian, version 1
  header.writeUInt16LE(2, 16); // executable
  header.writeUInt16LE(machine, 18);
  header.writeUInt32LE(1, 20); // version
  header.writeBigUInt64LE(BigInt(loadAddress + header.length), 24); // entry
  header.writeBigUInt64LE(BigInt(headerBytes), 32); // offset of the segment table
  header.writeUInt16LE(headerBytes, 52);
  header.writeUInt16LE(segmentBytes, 54);
  header.writeUInt16LE(1, 56); // one segment
  const segment = header.subarray(headerBytes);
  segment.writeUInt32LE(1, 0); // loaded
  segment.writeUInt32LE(5, 4); // read, execute
  segment.writeBigUInt64LE(BigInt(loadAddress), 16);
  segment.writeBigUInt64LE(BigInt(loadAddress), 24);
  segment.writeBigUInt64LE(BigInt(size), 32);
  segment.writeBigUInt64LE(BigInt(size), 40);
  segment.writeBigUInt64LE(0x1000n, 48); // alignment
  return Buffer.concat([header, text]);
}
