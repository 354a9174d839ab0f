/** Object identifiers of element types, fixed in every PostgreSQL. */
const oid = { bytea: 17, int8: 20, text: 25 } as const;

const headerBytes = 20;

/**
 * The binary form of a one-dimensional array, in which nothing is escaped and bytes stay bytes. Undefined items are
 * null.
 */
function encodeArray(type: number, items: readonly (Uint8Array | undefined)[]): Buffer {
  let size = headerBytes;
  let nulls = 0;
  for (const item of items) {
    size += 4 + (item?.byteLength ?? 0);
    if (item === undefined) nulls = 1;
  }
  const buffer = Buffer.allocUnsafe(size);
  buffer.writeInt32BE(1, 0);
  buffer.writeInt32BE(nulls, 4);
  buffer.writeInt32BE(type, 8);
  buffer.writeInt32BE(items.length, 12);
  buffer.writeInt32BE(1, 16);
  let offset = headerBytes;
  for (const item of items) {
    offset = buffer.writeInt32BE(item?.byteLength ?? -1, offset);
    if (item === undefined) continue;
    buffer.set(item, offset);
    offset += item.byteLength;
  }
  return buffer;
}

/** `text[]`; the items are UTF-8. */
export function textArray(items: readonly (Uint8Array | undefined)[]): Buffer {
  return encodeArray(oid.text, items);
}

export function byteaArray(items: readonly (Uint8Array | undefined)[]): Buffer {
  return encodeArray(oid.bytea, items);
}

/** `bigint[]` of safe integers. */
export function int8Array(items: readonly (number | undefined)[]): Buffer {
  return encodeArray(
    oid.int8,
    items.map((item) => {
      if (item === undefined) return undefined;
      const bytes = Buffer.allocUnsafe(8);
      bytes.writeBigInt64BE(BigInt(item));
      return bytes;
    }),
  );
}
