import type { Field, Schema, SchemaNode } from '@keelson/core';

type AnyField = Field<unknown, boolean>;
type Plain = Readonly<Record<string, unknown>>;

/**
 * Bytes of a message as the generated code of Go servers and clients lays them out: what is no pointer is always there.
 * Written without the code under test, also without its library.
 */
export function goBytes(schema: Schema<unknown>, value: Plain): Buffer {
  return message(schema.node, value);
}

function varint(value: number | bigint): Buffer {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  do {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    rest >>= 7n;
  } while (rest !== 0n);
  return Buffer.from(bytes);
}

function integer(number: number, value: number | bigint): Buffer {
  return Buffer.concat([varint(number * 8), varint(value)]);
}

function delimited(number: number, bytes: Buffer | string): Buffer {
  const content = Buffer.from(bytes);
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
}

function message(node: SchemaNode, value: Plain): Buffer {
  if (node.type !== 'message') throw new Error('not a message');
  const fields = Object.entries(node.fields).filter(([, field]) => field.number !== undefined);
  return Buffer.concat(
    fields
      .sort(([, a], [, b]) => a.number! - b.number!)
      .map(([name, field]) =>
        field.inline ? delimited(field.number!, message(field.schema.node, value)) : member(name, field, value[name]),
      ),
  );
}

function member(name: string, field: AnyField, value: unknown): Buffer {
  const node = field.schema.node;
  const number = field.number!;
  if (node.type === 'list')
    return Buffer.concat(((value ?? []) as unknown[]).map((item) => single(number, node.items.node, item)));
  if (node.type === 'map') {
    const entries = Object.entries((value ?? {}) as Plain).sort(([a], [b]) => (a < b ? -1 : 1));
    return Buffer.concat(
      entries.map(([key, item]) =>
        delimited(number, Buffer.concat([delimited(1, key), single(2, node.values.node, item)])),
      ),
    );
  }
  return value === undefined && isPointer(name, field) ? Buffer.alloc(0) : single(number, node, value);
}

/** Times that are pointers in Go; the schema does not state it, because JSON makes no difference. */
const pointerTimes = ['acquireTime', 'deletionTimestamp', 'renewTime', 'startTime', 'time', 'timeAdded'];

/**
 * Of the types that are no pointers a zero value is written. Optional messages are pointers, but for metadata; and a
 * security context is one although servers fill it in.
 */
function isPointer(name: string, field: AnyField): boolean {
  const { type } = field.schema.node;
  if (type === 'time' || type === 'microTime') return pointerTimes.includes(name);
  if (type === 'message') return (field.whenAbsent !== 'zero' && name !== 'metadata') || name === 'securityContext';
  if (type === 'quantity' || type === 'duration' || type === 'raw') return field.whenAbsent !== 'zero';
  if (type === 'any' || type === 'union') return true;
  return field.presence === true;
}

function instant(text: unknown): Buffer {
  if (typeof text !== 'string') return Buffer.alloc(0);
  const [whole = '', fraction = ''] = text.slice(0, -1).split('.');
  return Buffer.concat([
    integer(1, Date.parse(`${whole}Z`) / 1000),
    integer(2, Number(fraction.padEnd(6, '0')) * 1000),
  ]);
}

function single(number: number, node: SchemaNode, value: unknown): Buffer {
  switch (node.type) {
    case 'string':
      return delimited(number, (value as string) ?? '');
    case 'bytes':
      return delimited(number, Buffer.from((value as string) ?? '', 'base64'));
    case 'int32':
    case 'int64':
      return integer(number, (value as number) ?? 0);
    case 'bool':
      return integer(number, value === true ? 1 : 0);
    case 'time':
    case 'microTime':
      return delimited(number, instant(value));
    case 'quantity':
      return delimited(number, delimited(1, (value as string) ?? '0'));
    case 'intOrString': {
      const text = typeof value === 'string';
      const parts = [
        integer(1, text ? 1 : 0),
        integer(2, text ? 0 : ((value as number) ?? 0)),
        delimited(3, text ? value : ''),
      ];
      return delimited(number, Buffer.concat(parts));
    }
    case 'raw':
    case 'any':
      return delimited(number, delimited(1, JSON.stringify(value)));
    case 'union':
      return delimited(number, message(node.message.node, { [node.fieldOf(value) ?? '']: value }));
    case 'double': {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleLE((value as number) ?? 0);
      return Buffer.concat([varint(number * 8 + 1), bytes]);
    }
    // A list inside a map is a message around the list.
    case 'list':
      return delimited(
        number,
        Buffer.concat(((value ?? []) as unknown[]).map((item) => single(1, node.items.node, item))),
      );
    case 'message':
      return delimited(number, message(node, (value ?? {}) as Plain));
    default:
      throw new Error(`no Go form for ${node.type}`);
  }
}
