import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Schema, SchemaNode } from '@keelson/core';
import {
  decoderOf,
  isProtobufSyntaxError,
  type MessageNode,
  parseYaml,
  protobufDecoderOf,
  protobufEncoderOf,
  toYaml,
} from '@keelson/core/internal';
import test from 'ava';
import fc from 'fast-check';
import { builtinKinds } from '../../src/index.ts';
import { generateObject } from './generate.ts';
import { goBytes } from './go-writer.ts';

/** Objects of each kind; the nightly run has more. */
const chosenRuns = process.env['KEELSON_PROTOBUF_RUNS'];
const runs = Number(chosenRuns ?? '60');

/** Every kind, and the bodies of their subresources. */
const schemas = new Map<string, Schema<unknown>>();
for (const kind of builtinKinds) {
  schemas.set(`${kind.apiVersion} ${kind.kind}`, kind.schema);
  for (const subresource of kind.subresources) {
    if (subresource.type !== 'projection' && subresource.type !== 'action') continue;
    const { group, version, kind: word } = subresource.bodyKind;
    schemas.set(`${group === '' ? version : `${group}/${version}`} ${word}`, subresource.schema);
  }
}

/** The text of an object in canonical form; key order counts. */
function canonical(schema: Schema<unknown>, value: unknown): string {
  return JSON.stringify(decoderOf(schema)(value).value);
}

const inputs = fc.tuple(fc.integer(), fc.integer({ min: 1, max: 150 }));

for (const [name, schema] of schemas) {
  test(`${name}: an object is unchanged after round trips through JSON, protobuf and YAML`, async (t) => {
    // Yields between kinds, so that the runner sees progress.
    await setImmediate();
    const encode = protobufEncoderOf(schema);
    const decode = protobufDecoderOf(schema);
    const complete = decoderOf(schema);
    const started = performance.now();
    let [count, json, protobuf] = [0, 0, 0];
    fc.assert(
      fc.property(inputs, ([seed, size]) => {
        const { value } = complete(generateObject(schema, seed, size));
        const text = JSON.stringify(value);
        const bytes = encode(value);
        const fromProtobuf = complete(decode(bytes)).value;
        t.is(JSON.stringify(fromProtobuf), text);

        const fromYaml = parseYaml(toYaml(fromProtobuf));
        t.is(JSON.stringify(fromYaml.value), text);
        t.is(fromYaml.duplicateFields.length, 0);
        t.true(encode(complete(fromYaml.value).value).equals(bytes));

        // Go writers spell out every zero and sort maps; it is the same object all the same.
        t.true(isDeepStrictEqual(complete(decode(goBytes(schema, value as Record<string, unknown>))).value, value));
        count += 1;
        json += text.length;
        protobuf += bytes.length;
      }),
      { numRuns: runs },
    );
    if (chosenRuns === undefined) return;
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    t.log(
      `${name}: ${count} objects, ${Math.round(json / count)} bytes of JSON, ${Math.round(protobuf / count)} of protobuf, ${seconds} s`,
    );
  });
}

/** Messages below the kinds, most of which few generated kinds contain. */
const messages = new Map<string, MessageNode>();
function collect(node: SchemaNode): void {
  if (node.type === 'list') collect(node.items.node);
  else if (node.type === 'map') collect(node.values.node);
  else if (node.type === 'message' && messages.get(node.name) !== node) {
    messages.set(node.name, node);
    for (const field of Object.values(node.fields)) collect(field.schema.node);
  }
}
for (const schema of schemas.values()) collect(schema.node);

test('every single message is unchanged after encoding by this encoder and by that of Go', (t) => {
  t.true(messages.size > 200);
  for (const [name, node] of messages) {
    const schema: Schema<unknown> = { node };
    const decode = protobufDecoderOf(schema);
    for (let seed = 1; seed <= 20; seed += 1) {
      const { value } = decoderOf(schema)(generateObject(schema, seed, 60));
      const text = JSON.stringify(value);
      t.is(canonical(schema, decode(protobufEncoderOf(schema)(value))), text, `${name} ${seed}`);
      t.is(
        canonical(schema, decode(goBytes(schema, value as Record<string, unknown>))).length,
        text.length,
        `${name} ${seed}`,
      );
    }
  }
});

test('mutated bytes are rejected or decoded in bounded time', (t) => {
  const pods = builtinKinds.filter(({ kind }) => ['Pod', 'Node', 'Deployment', 'Ingress', 'Secret'].includes(kind));
  const mutation = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    byte: fc.integer({ min: 0, max: 255 }),
    action: fc.constantFrom('set', 'cut', 'insert', 'delete'),
  });
  let refused = 0;
  let slowest = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...pods),
      inputs,
      fc.array(mutation, { minLength: 1, maxLength: 6 }),
      (kind, [seed, size], mutations) => {
        let bytes = goBytes(
          kind.schema,
          decoderOf(kind.schema)(generateObject(kind.schema, seed, size)).value as never,
        );
        for (const { at, byte, action } of mutations) {
          const index = Math.floor(at * bytes.length);
          if (action === 'set') bytes[index] = byte;
          else if (action === 'cut') bytes = bytes.subarray(0, index);
          else if (action === 'insert')
            bytes = Buffer.concat([bytes.subarray(0, index), Buffer.of(byte), bytes.subarray(index)]);
          else bytes = Buffer.concat([bytes.subarray(0, index), bytes.subarray(index + 1)]);
        }
        const start = performance.now();
        try {
          protobufDecoderOf(kind.schema)(Buffer.from(bytes));
        } catch (error) {
          if (!isProtobufSyntaxError(error)) throw error;
          refused += 1;
        }
        slowest = Math.max(slowest, performance.now() - start);
      },
    ),
    { numRuns: 3000 },
  );
  t.true(refused > 300, `${refused} refused`);
  t.true(slowest < 500, `${slowest} ms`);
});
