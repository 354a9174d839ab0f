import type { Writer } from 'protobufjs/minimal.js';
import { checkMessages } from '../../kind/message-check.ts';
import type { Schema } from '../../kind/schema.ts';
import { type MessageNode, messageNode } from '../../kind/schema-walk.ts';
import { beginMessage, messageReader, readFields } from './message-reader.ts';
import { messageWriter, writeFields } from './message-writer.ts';
import { library, reading } from './wire.ts';

/** Gives the bytes of the message that a JSON object is. */
export type ProtobufEncoder<T> = (value: T) => Buffer;

/** Gives the JSON object that a message is. */
export type ProtobufDecoder = (bytes: Buffer) => Record<string, unknown>;

const encoders = new WeakMap<MessageNode, ProtobufEncoder<unknown>>();
const decoders = new WeakMap<MessageNode, ProtobufDecoder>();

function messageOf(schema: Schema<unknown>): MessageNode {
  const node = messageNode(schema);
  if (node === undefined) throw new Error(`a schema of type ${schema.node.type} is no protobuf message`);
  return node;
}

const numbered = new WeakMap<Schema<unknown>['node'], boolean>();

/** True when a schema is a message and every message that it reaches has field numbers throughout. */
export function hasProtobufForm(schema: Schema<unknown>): boolean {
  let known = numbered.get(schema.node);
  if (known === undefined) {
    known = schema.node.type === 'message' && checkMessages(schema).protobuf;
    numbered.set(schema.node, known);
  }
  return known;
}

/**
 * The encoder of a message schema, compiled on first use and kept as long as the schema. It takes objects as the JSON
 * decoder makes them and writes exactly the fields they have; what exists in JSON alone (`kind`, `apiVersion`) is left
 * out, nested or not.
 *
 * @throws Error when a message of the schema has fields without numbers; the encoder throws TypeError for values of a
 *   wrong type.
 */
export function protobufEncoderOf<T>(schema: Schema<T>): ProtobufEncoder<T> {
  const node = messageOf(schema);
  let encoder = encoders.get(node);
  if (encoder === undefined) {
    const message = messageWriter(node);
    encoder = (value) => written((writer) => writeFields(message, writer, value));
    encoders.set(node, encoder);
  }
  return encoder;
}

/**
 * The decoder of a message schema, compiled on first use and kept as long as the schema. What it gives is what a JSON
 * body of the same content would parse to; defaults, canonical texts and validation are the business of the JSON
 * decoder, which has to see it next.
 *
 * Go writers put zero values where JSON leaves a field out; they are dropped again unless the field is always written
 * or distinguishes zero from absence (`presence`). Unknown fields are skipped, as reference servers do. Nothing of the
 * result refers to `bytes`.
 *
 * @throws Error when a message of the schema has no protobuf form; the decoder throws ProtobufSyntaxError for bytes
 *   that are no such message.
 */
export function protobufDecoderOf(schema: Schema<unknown>): ProtobufDecoder {
  const node = messageOf(schema);
  let decoder = decoders.get(node);
  if (decoder === undefined) {
    if (!hasProtobufForm(schema)) throw new Error(`message ${node.name} has no protobuf form`);
    const message = messageReader(node);
    decoder = (bytes) =>
      reading(() => {
        beginMessage();
        const value: Record<string, unknown> = {};
        readFields(message, library().Reader.create(bytes), bytes.length, value, 1);
        return value;
      });
    decoders.set(node, decoder);
  }
  return decoder;
}

/** Larger buffers are not kept for the next message. */
const keptBytes = 256 * 1024;

/** Undefined while nothing has been written, or after something that must not be kept. */
let shared: Writer | undefined;

/** The bytes that `write` produces. The writer is used again and again; writing never waits and never nests. */
export function written(write: (writer: Writer) => void): Buffer {
  shared ??= library().Writer.create();
  const writer = shared;
  let whole = false;
  try {
    write(writer);
    const bytes = writer.finish() as Buffer;
    whole = bytes.length <= keptBytes;
    return bytes;
  } finally {
    if (whole) writer.reset();
    else shared = undefined;
  }
}
